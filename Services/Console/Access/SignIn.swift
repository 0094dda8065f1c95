import Foundation
import ServiceKit
import SyncModel
import SyncStore

/// Checks names, passwords and second factors, and slows down guessing (SEC14).
///
/// A try is counted before the check, so that simultaneous tries all count. Tries are counted for each source and name,
/// and with a higher limit for all sources of a name, so that guesses mainly delay their own source.
final class SignIn: Sendable {
    /// The allowed length of a password, in UTF-16 units (NIST SP 800-63B).
    static let passwordUnits = 12...256
    /// A refused sign-in is answered at a multiple of this interval after its arrival, so that the response time
    /// reveals nothing about the checks.
    private static let pace = Duration.milliseconds(500)
    /// The name under which tries with impossible account names are counted.
    private static let noName = "?"

    private let database: Database
    private let hashes = PasswordHash()
    private let seal: SecondFactorSeal?
    private let records: AuditRecorder
    private let limiter = PasswordHashLimiter()

    /// - Parameter seal: nil when this console has no sealing key, and so no second factors.
    init(database: Database, records: AuditRecorder, seal: SecondFactorSeal?) {
        self.database = database
        self.records = records
        self.seal = seal
    }

    /// Whether accounts can have second factors.
    var keepsSecondFactors: Bool { seal != nil }

    // MARK: Sign-in

    /// Checks a sign-in. A wrong password, an unknown name and a source that must wait get the same response after the
    /// same time.
    ///
    /// - Parameters:
    ///   - code: the code of the second factor; nil when none was given.
    ///   - source: the source address of the request.
    /// - Throws: `signInFailed`; `codeNeeded` when only the code is missing; `busy`.
    func check(
        _ name: String, _ password: String, code: String?, from source: String
    ) async throws(ConsoleFault) {
        let receivedAt = ContinuousClock.now
        do throws(ConsoleFault) {
            try await verify(name, password, code: code, from: source)
        } catch {
            if error == .signInFailed { await Self.delayRefusal(since: receivedAt) }
            throw error
        }
    }

    private func verify(
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
            // Tries at unknown names are not recorded: they would fill the audit log.
            if usable != nil { try await recordFailure(.failedSignIn, of: known, from: source) }
            throw .signInFailed
        }
        if let sealed = usable.sealedSecondFactor {
            guard let code, !code.trimmed.isEmpty else {
                try await database.run(AccountStore.forgiveTry(at: known, from: tries, isKnown: false))
                throw .codeNeeded
            }
            guard try await isCode(code, of: known, sealed: sealed) else {
                try await recordFailure(.failedSignIn, of: known, from: source)
                throw .signInFailed
            }
        }
        try await database.run(AccountStore.forgiveTry(at: known, from: tries, isKnown: true))
    }

    private static func delayRefusal(since receivedAt: ContinuousClock.Instant) async {
        let steps = Int((.now - receivedAt) / pace) + 1
        // A closed connection cancels the wait.
        try? await Task.sleep(until: receivedAt + pace * steps, clock: .continuous)
    }

    private func recordFailure(
        _ action: OperationAction, of name: String, from source: String
    ) async throws(ConsoleFault) {
        try await records.record(action, by: OperationActor("console:\(name)", from: source), subject: name)
    }

    // MARK: Signed-in accounts

    /// Checks the password of a signed-in account again. Failures count like those of a sign-in and are recorded.
    ///
    /// - Parameter field: the name of the input with the password.
    /// - Throws: `wrong`; `tooManyTries` with the seconds to wait, which a signed-in account may know.
    func confirm(_ password: String, of principal: RequestPrincipal, field: String) async throws(ConsoleFault) {
        let name = principal.account.name
        let tries = try await claim(name, principal, field: field)
        let secrets = try await database.run(AccountStore.secrets(of: name))
        guard try await isRight(password, secrets?.passwordHash, at: name, from: tries) else {
            try await recordFailure(.failedConfirmation, of: name, from: principal.source)
            throw .wrong(field, "fault.passwordWrong")
        }
        try await database.run(AccountStore.forgiveTry(at: name, from: tries, isKnown: true))
    }

    /// Checks the code of a second factor before it is replaced or removed. Does nothing when there is none.
    ///
    /// - Throws: `wrong`, `tooManyTries`.
    func confirmCode(_ code: String?, of principal: RequestPrincipal, field: String) async throws(ConsoleFault) {
        let name = principal.account.name
        guard let sealed = try await database.run(AccountStore.secrets(of: name))?.sealedSecondFactor else { return }
        guard let code, !code.trimmed.isEmpty else { throw .wrong(field, "fault.currentCode") }
        // Codes are counted under a name that no account can have, so that a right password does not reset their count.
        let codes = "\(name) code"
        let tries = try await claim(codes, principal, field: field)
        guard try await isCode(code, of: name, sealed: sealed) else {
            try await recordFailure(.failedConfirmation, of: name, from: principal.source)
            throw .wrong(field, "fault.codeWrong")
        }
        try await database.run(AccountStore.forgiveTry(at: codes, from: tries, isKnown: true))
    }

    private func claim(_ name: String, _ principal: RequestPrincipal, field: String) async throws(ConsoleFault)
        -> String
    {
        let tries = SourceAddress(text: principal.source).text
        let wait = try await database.run(AccountStore.claimTry(at: name, from: tries))
        guard wait <= .zero else { throw .tooManyTries(wait, field: field) }
        return tries
    }

    /// Whether a code is valid and unused; marks it as used.
    private func isCode(_ code: String, of name: String, sealed: [UInt8]) async throws(ConsoleFault) -> Bool {
        guard let secret = seal?.open(sealed, of: name),
            let step = TimeCode.step(of: code, secret: secret, at: WallTime.now.milliseconds / 1_000)
        else { return false }
        return try await database.run(AccountStore.useCode(step: step, of: name))
    }

    // MARK: New secrets

    /// The hash of a new password.
    ///
    /// - Throws: `wrong` when it is too short, too long, or the name itself; `busy`.
    func hash(_ password: String, of name: String, from source: String) async throws(ConsoleFault) -> String {
        guard Self.passwordUnits.contains(password.utf16.count), password.lowercased() != name.lowercased() else {
            throw .wrong("password", "fault.passwordForm")
        }
        return try await limiter.perform(from: SourceAddress(text: source).text) { await hashes.make(password) }
    }

    /// Checks the first code of a new second factor and seals its secret.
    ///
    /// - Returns: the sealed secret, and the time step of the code, which cannot be used again.
    /// - Throws: `wrong` when the code does not match the secret; `REFUSED` when this console has no sealing key.
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
        // No account has a longer password, and hashing one would take more time.
        let text = password.utf16.count <= Self.passwordUnits.upperBound ? password : ""
        do throws(ConsoleFault) {
            return try await limiter.perform(from: source) { await hashes.check(text, against: hash) }
        } catch {
            // Nothing was checked, so a busy console does not add to the account's waiting time.
            try await database.run(AccountStore.forgiveTry(at: name, from: source, isKnown: false))
            throw error
        }
    }
}
