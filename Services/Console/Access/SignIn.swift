import Foundation
import ServiceKit
import SyncModel
import SyncStore

/// Checks names, passwords and second factors, slowly for who guesses (reliability SEC14).
///
/// A try is taken before anything is looked at, so that of many at once each counts. Tries are counted for each source
/// and, with more of them free, for all sources of a name together: a stranger who guesses makes himself wait.
final class SignIn: Sendable {
    /// What a password must have at least (NIST SP 800-63B).
    static let passwordUnits = 12...256
    /// A refused sign-in is answered at a multiple of this after it came: it says nothing about what was done.
    private static let pace = Duration.milliseconds(500)
    /// Counts the tries at all names that no account can have.
    private static let noName = "?"

    private let database: Database
    private let hashes = PasswordHash()
    private let seal: SecondFactorSeal?
    private let records: RecordDesk
    private let turns = PasswordTurns()

    /// - Parameter seal: nil: there can be no second factors.
    init(database: Database, records: RecordDesk, seal: SecondFactorSeal?) {
        self.database = database
        self.records = records
        self.seal = seal
    }

    /// Whether it can keep second factors.
    var keepsSecondFactors: Bool { seal != nil }

    // MARK: Sign-in

    /// Checks a sign-in. A wrong password, a name that is nobody's and one that has to wait have the same answer after
    /// the same time.
    ///
    /// - Parameters:
    ///   - code: nil: none was given.
    ///   - source: the address that it comes from.
    /// - Throws: `signInFailed`, `codeNeeded` once the password is right, `busy`.
    func check(
        _ name: String, _ password: String, code: String?, from source: String
    ) async throws(ConsoleFault) {
        let came = ContinuousClock.now
        do throws(ConsoleFault) {
            try await enter(name, password, code: code, from: source)
        } catch {
            if error == .signInFailed { await Self.keepPace(since: came) }
            throw error
        }
    }

    private func enter(
        _ name: String, _ password: String, code: String?, from source: String
    ) async throws(ConsoleFault) {
        let known = ConsoleAccount.isName(name) ? name : Self.noName
        let tries = SourceAddress(text: source).text
        guard try await database.run(AccountStore.claimTry(at: known, from: tries)) <= .zero else {
            throw .signInFailed
        }
        let secrets = try await database.run(AccountStore.secrets(of: known))
        let usable = secrets.flatMap { $0.isEnabled ? $0 : nil }
        guard try await isRight(password, usable?.passwordHash, at: known, from: tries), let usable else {
            // Of who guesses names the records would only fill up.
            if usable != nil { try await noteFailure(.failedSignIn, of: known, from: source) }
            throw .signInFailed
        }
        if let sealed = usable.sealedSecondFactor {
            guard let code, !code.trimmed.isEmpty else {
                try await database.run(AccountStore.forgiveTry(at: known, from: tries, isKnown: false))
                throw .codeNeeded
            }
            guard try await isCode(code, of: known, sealed: sealed) else {
                try await noteFailure(.failedSignIn, of: known, from: source)
                throw .signInFailed
            }
        }
        try await database.run(AccountStore.forgiveTry(at: known, from: tries, isKnown: true))
    }

    private static func keepPace(since came: ContinuousClock.Instant) async {
        let steps = Int((.now - came) / pace) + 1
        // Whoever hangs up does not wait.
        try? await Task.sleep(until: came + pace * steps, clock: .continuous)
    }

    private func noteFailure(
        _ action: OperationAction, of name: String, from source: String
    ) async throws(ConsoleFault) {
        try await records.note(action, by: OperationActor("console:\(name)", from: source), subject: name)
    }

    // MARK: Who is signed in already

    /// Asks whoever is signed in for the password again; failures count like those of a sign-in and are recorded.
    ///
    /// - Parameter field: the input that has it.
    /// - Throws: `wrong`, or `tooManyTries` with the seconds to wait: who is signed in is told apart.
    func confirm(_ password: String, of visitor: Visitor, field: String) async throws(ConsoleFault) {
        let name = visitor.account.name
        let tries = try await claim(name, visitor, field: field)
        let secrets = try await database.run(AccountStore.secrets(of: name))
        guard try await isRight(password, secrets?.passwordHash, at: name, from: tries) else {
            try await noteFailure(.failedConfirmation, of: name, from: visitor.source)
            throw .wrong(field, "fault.passwordWrong")
        }
        try await database.run(AccountStore.forgiveTry(at: name, from: tries, isKnown: true))
    }

    /// Asks whoever has a second factor for its code before it is replaced or removed.
    ///
    /// - Throws: `wrong`, `tooManyTries`.
    func confirmCode(_ code: String?, of visitor: Visitor, field: String) async throws(ConsoleFault) {
        let name = visitor.account.name
        guard let sealed = try await database.run(AccountStore.secrets(of: name))?.sealedSecondFactor else { return }
        guard let code, !code.trimmed.isEmpty else { throw .wrong(field, "fault.currentCode") }
        // Counted apart, under what is no account's name: a right password does not make room for more codes.
        let codes = "\(name) code"
        let tries = try await claim(codes, visitor, field: field)
        guard try await isCode(code, of: name, sealed: sealed) else {
            try await noteFailure(.failedConfirmation, of: name, from: visitor.source)
            throw .wrong(field, "fault.codeWrong")
        }
        try await database.run(AccountStore.forgiveTry(at: codes, from: tries, isKnown: true))
    }

    private func claim(_ name: String, _ visitor: Visitor, field: String) async throws(ConsoleFault) -> String {
        let tries = SourceAddress(text: visitor.source).text
        let wait = try await database.run(AccountStore.claimTry(at: name, from: tries))
        guard wait <= .zero else { throw .tooManyTries(wait, field: field) }
        return tries
    }

    /// Whether it is the code of a step that was not used before, which it is from now on.
    private func isCode(_ code: String, of name: String, sealed: [UInt8]) async throws(ConsoleFault) -> Bool {
        guard let secret = seal?.open(sealed, of: name),
            let step = TimeCode.step(of: code, secret: secret, at: WallTime.now.milliseconds / 1_000)
        else { return false }
        return try await database.run(AccountStore.useCode(step: step, of: name))
    }

    // MARK: New ones

    /// The hash of a new password.
    ///
    /// - Throws: `wrong` when it is too short, too long, or the name itself; `busy`.
    func hash(_ password: String, of name: String, from source: String) async throws(ConsoleFault) -> String {
        guard Self.passwordUnits.contains(password.utf16.count), password.lowercased() != name.lowercased() else {
            throw .wrong("password", "fault.passwordForm")
        }
        return try await turns.take(from: SourceAddress(text: source).text) { await hashes.make(password) }
    }

    /// Seals a second factor's secret after its first code.
    ///
    /// - Returns: the secret, sealed, and the step of the code, which is not good again.
    /// - Throws: `wrong` for a code that is not of the secret, `refused` when nothing can be sealed.
    func sealed(
        _ secret: [UInt8], code: String, of name: String
    ) throws(ConsoleFault) -> (secret: [UInt8], step: Int64) {
        guard let step = TimeCode.step(of: code, secret: secret, at: WallTime.now.milliseconds / 1_000) else {
            throw .wrong("code", "fault.codeWrong")
        }
        guard let sealed = seal?.seal(secret, of: name) else {
            throw ConsoleFault(status: 422, code: "REFUSED", word: "fault.noSecondFactors")
        }
        return (sealed, step)
    }

    private func isRight(
        _ password: String, _ hash: String?, at name: String, from source: String
    ) async throws(ConsoleFault) -> Bool {
        // Longer ones are nobody's, and would only cost time.
        let text = password.utf16.count <= Self.passwordUnits.upperBound ? password : ""
        do throws(ConsoleFault) {
            return try await turns.take(from: source) { await hashes.check(text, against: hash) }
        } catch {
            // Nothing was looked at: others who keep this console busy must not make anybody wait longer.
            try await database.run(AccountStore.forgiveTry(at: name, from: source, isKnown: false))
            throw error
        }
    }
}
