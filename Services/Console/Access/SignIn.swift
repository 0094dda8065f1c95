import Foundation
import ServiceKit
import SyncModel
import SyncStore
import Synchronization

/// Checks names, passwords and second factors, slowly for who guesses (reliability SEC14).
final class SignIn: Sendable {
    /// Password checks that may wait; above that the answer is "busy".
    private static let waitingMaximum = 16
    /// What a password must have at least (NIST SP 800-63B).
    static let passwordUnits = 12...256

    private let database: Database
    private let hashes = PasswordHash()
    private let seal: SecondFactorSeal?
    private let records: RecordDesk
    private let waiting = Mutex(0)

    /// - Parameter seal: nil: there can be no second factors.
    init(database: Database, records: RecordDesk, seal: SecondFactorSeal?) {
        self.database = database
        self.records = records
        self.seal = seal
    }

    /// Whether it can keep second factors.
    var keepsSecondFactors: Bool { seal != nil }

    /// Checks a sign-in; every failure but a missing code has the same answer, and takes as long.
    ///
    /// - Parameters:
    ///   - code: nil: none was given.
    ///   - source: for the records.
    /// - Throws: `signInFailed`, `codeNeeded` once the password is right, `busy`.
    func check(
        _ name: String, _ password: String, code: String?, from source: String
    ) async throws(ConsoleFault) {
        let secrets = try await database.run(AccountStore.secrets(of: name))
        let usable = secrets.flatMap { $0.isEnabled && !$0.isLocked ? $0 : nil }
        guard try await isRight(password, usable?.passwordHash), let usable else {
            // Of who guesses names, or goes on guessing, the records would only fill up.
            if usable != nil { try await noteFailure(of: name, from: source) }
            throw .signInFailed
        }
        if let sealed = usable.sealedSecondFactor {
            guard let code, !code.trimmed.isEmpty else { throw .codeNeeded }
            guard let secret = seal?.open(sealed, of: name),
                let step = TimeCode.step(of: code, secret: secret, at: WallTime.now.milliseconds / 1_000),
                try await database.run(AccountStore.useCode(step: step, of: name))
            else {
                try await noteFailure(of: name, from: source)
                throw .signInFailed
            }
        }
        _ = try await database.run(AccountStore.forgetFailures(of: name))
    }

    private func noteFailure(of name: String, from source: String) async throws(ConsoleFault) {
        _ = try await database.run(AccountStore.noteFailure(of: name))
        try await records.note(.failedSignIn, by: "console:\(name)", subject: source)
    }

    /// Whether it is the account's password; failures count as those of a sign-in.
    func isPassword(_ password: String, of name: String) async throws(ConsoleFault) -> Bool {
        let secrets = try await database.run(AccountStore.secrets(of: name))
        let usable = secrets.flatMap { $0.isEnabled && !$0.isLocked ? $0 : nil }
        guard try await isRight(password, usable?.passwordHash) else {
            _ = try await database.run(AccountStore.noteFailure(of: name))
            return false
        }
        return true
    }

    /// The hash of a new password.
    ///
    /// - Throws: `wrong` when it is too short, too long, or the name itself.
    func hash(_ password: String, of name: String) async throws(ConsoleFault) -> String {
        guard Self.passwordUnits.contains(password.utf16.count), password.lowercased() != name.lowercased() else {
            throw .wrong("password", "fault.passwordForm")
        }
        return try await waitingTurn { await hashes.make(password) }
    }

    /// Seals a second factor's secret after its first code.
    ///
    /// - Throws: `wrong` for a code that is not of the secret, `refused` when nothing can be sealed.
    func sealed(_ secret: [UInt8], code: String, of name: String) throws(ConsoleFault) -> [UInt8] {
        guard TimeCode.step(of: code, secret: secret, at: WallTime.now.milliseconds / 1_000) != nil else {
            throw .wrong("code", "fault.codeWrong")
        }
        guard let sealed = seal?.seal(secret, of: name) else {
            throw ConsoleFault(status: 422, code: "REFUSED", word: "fault.noSecondFactors")
        }
        return sealed
    }

    private func isRight(_ password: String, _ hash: String?) async throws(ConsoleFault) -> Bool {
        // Longer ones are nobody's, and would only cost time.
        let text = password.utf16.count <= Self.passwordUnits.upperBound ? password : ""
        return try await waitingTurn { await hashes.check(text, against: hash) }
    }

    private func waitingTurn<Result>(_ work: () async -> Result) async throws(ConsoleFault) -> Result {
        let isTaken = waiting.withLock { waiting in
            guard waiting < Self.waitingMaximum else { return false }
            waiting += 1
            return true
        }
        guard isTaken else { throw .busy }
        defer { waiting.withLock { $0 -= 1 } }
        return await work()
    }
}
