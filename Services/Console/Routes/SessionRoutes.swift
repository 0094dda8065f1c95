import Credentials
import Crypto
import Foundation
import SyncModel
import SyncStore

/// Sign-in, sign-out, invitations, and an account's own settings (SEC13, SEC14).
struct SessionRoutes: Sendable {
    let database: Database
    let sessions: Sessions
    let signIn: SignIn
    /// Whether an account that may change anything needs a second factor.
    let requiresSecondFactor: Bool

    private struct Credentials: Decodable {
        let name: String
        let password: String
        let code: String?
    }

    private struct Password: Decodable { let password: String }

    private struct Invitation: Decodable {
        let token: String
        let name: String?
        let password: String
    }

    private struct PasswordChange: Decodable {
        let oldPassword: String
        let password: String
    }

    private struct LanguageChoice: Decodable { let language: String }

    private struct SecondFactor: Decodable {
        let secret: String
        let code: String
        let currentCode: String?
    }

    private struct Code: Decodable { let code: String }

    /// A new session, for a program.
    struct Started: Encodable {
        let token: String
        let account: String
    }

    /// The signed-in account.
    struct Me: Encodable, Sendable {
        let account: String
        let language: String
        let roles: [String: String]
        let secondFactor: Bool

        // For pages alone.
        let keepsSecondFactors: Bool
        let mustEnrol: Bool
        let isEnglish: Bool
        let isChinese: Bool
        let grants: [AccountRoutes.Grant]

        private enum CodingKeys: String, CodingKey { case account, language, roles, secondFactor }
    }

    /// The page for the password of an invited account.
    struct ChoosePassword: Sendable {
        let isSetup: Bool
        let shortest: Int
    }

    /// The sign-in page.
    struct SignInPage: Sendable { let next: String }

    var routes: [Route] { signInRoutes + invitations + own }

    private var signInRoutes: [Route] {
        [
            Route(method: .get, pattern: RoutePattern("/sign-in"), access: .open, summary: "The sign-in.") {
                request throws(ConsoleFault) in
                // Only a path of this console, so that a link cannot lead to another site after the sign-in.
                let next = request.query["next"] ?? "/"
                let isOurs = Self.isOurs(Array(next.utf8))
                return .page(
                    PageContent(
                        template: "sign-in", title: "title.signIn", content: SignInPage(next: isOurs ? next : "/")))
            },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/session"), access: .open,
                summary: "Signs in: sets a cookie for browsers; a program sends the token as Authorization: Bearer.",
                inputs: [
                    RouteInput("name", required: true, "The account."),
                    RouteInput("password", required: true, "The account's password."),
                    RouteInput("code", "The code of the second factor, when the account has one."),
                ], example: AnswerExamples.session
            ) { request throws(ConsoleFault) in
                let given = try request.input(Credentials.self)
                let account = given.name.trimmed
                try await signIn.check(account, given.password, code: given.code, from: request.source)
                let token = try await sessions.begin(account, from: request.source)
                var answer = ConsoleAnswer.json(Started(token: token.text, account: account))
                answer.headers = [SessionCookie.set(token)]
                return answer
            },
            Route(
                method: .delete, pattern: RoutePattern("/api/v1/session"), access: .signedIn,
                summary: "Signs out at every console."
            ) { request throws(ConsoleFault) in
                let principal = try request.signedIn()
                try await database.run(ConsoleSessionStore.end(principal.token.digest, by: principal.actor))
                var answer = ConsoleAnswer.done
                answer.headers = [SessionCookie.removal]
                return answer
            },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/session/confirm"), access: .signedIn,
                summary: "Confirms the password for calls that are hard to undo; valid for five minutes.",
                inputs: [RouteInput("password", required: true, "The account's password.")]
            ) { request throws(ConsoleFault) in
                let principal = try request.signedIn()
                let given = try request.input(Password.self)
                try await signIn.confirm(given.password, of: principal, field: "password")
                try await database.run(ConsoleSessionStore.confirm(principal.token.digest))
                return .done
            },
        ]
    }

    /// Whether a path is of this host. Browsers ignore tabs and line ends, read `\\` as `/`, and read two slashes at
    /// the beginning as another host, so the bytes are checked.
    static func isOurs(_ path: [UInt8]) -> Bool {
        path.first == UInt8(ascii: "/") && path.dropFirst().first != UInt8(ascii: "/")
            && path.allSatisfy { (0x21...0x7e).contains($0) && $0 != UInt8(ascii: "\\") }
    }

    // MARK: Invitations

    private var invitations: [Route] {
        [
            Route(method: .get, pattern: RoutePattern("/setup"), access: .open, summary: "The first administrator.") {
                _ throws(ConsoleFault) in choosePassword(isSetup: true)
            },
            Route(
                method: .get, pattern: RoutePattern("/choose-password"), access: .open,
                summary: "An invited account's first password."
            ) { _ throws(ConsoleFault) in choosePassword(isSetup: false) },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/invitations"), access: .open,
                summary: "Uses an invitation: sets the password of the invited account.",
                inputs: [
                    RouteInput("token", required: true, "The token of the invitation; valid once."),
                    RouteInput("name", "The name of the first administrator's account, which is created."),
                    RouteInput("password", required: true, "12 to 256 characters."),
                ]
            ) { request throws(ConsoleFault) in try await use(try request.input(Invitation.self), request) },
        ]
    }

    private func choosePassword(isSetup: Bool) -> ConsoleAnswer {
        .page(
            PageContent(
                template: "choose-password", title: isSetup ? "title.setup" : "title.choosePassword",
                content: ChoosePassword(isSetup: isSetup, shortest: SignIn.passwordUnits.lowerBound)))
    }

    private func use(_ given: Invitation, _ request: ConsoleRequest) async throws(ConsoleFault) -> ConsoleAnswer {
        guard let token = SessionToken(text: given.token.trimmed),
            let invited = try await database.run(AccountStore.invited(by: token.digest))
        else { throw .invitationGone }
        let name = invited.isEmpty ? (given.name ?? "").trimmed : invited
        let administrator = ConsoleAccount(name: name, grants: [ConsoleAccount.everyInstance: .administrator])
        if invited.isEmpty, administrator.fault != nil { throw .wrong("name", "fault.accountName") }
        let hash = try await signIn.hash(given.password, of: name, from: request.source)
        // When two uses are simultaneous, one fails here.
        let use = AccountStore.use(invitation: token.digest, for: name, hash: hash, from: request.source)
        guard try await database.run(use) else { throw .invitationGone }
        return .done
    }

    // MARK: Own account

    private var own: [Route] {
        [
            Route(method: .get, pattern: RoutePattern("/me"), access: .signedIn, summary: "The own account.") {
                request throws(ConsoleFault) in
                .page(PageContent(template: "me", title: "title.me", content: try me(request)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1/session"), access: .signedIn,
                summary: "The signed-in account.",
                example: AnswerExamples.me
            ) { request throws(ConsoleFault) in .json(try me(request)) },
            Route(
                method: .put, pattern: RoutePattern("/api/v1/me/language"), access: .signedIn,
                summary: "Sets the language of the pages.",
                inputs: [RouteInput("language", required: true, "en or zh.")]
            ) { request throws(ConsoleFault) in
                let choice = try request.input(LanguageChoice.self).language
                guard Language(rawValue: choice) != nil else { throw .wrong("language", "fault.choice", "en, zh") }
                _ = try await database.run(
                    AccountStore.setLanguage(choice, of: try request.signedIn().account.name))
                return .done
            },
            Route(
                method: .put, pattern: RoutePattern("/api/v1/me/password"), access: .signedIn,
                summary: "Sets a new password; every other session of the account ends.",
                inputs: [
                    RouteInput("oldPassword", required: true, "The current password."),
                    RouteInput("password", required: true, "12 to 256 characters."),
                ]
            ) { request throws(ConsoleFault) in
                let principal = try request.signedIn()
                let given = try request.input(PasswordChange.self)
                let name = principal.account.name
                try await signIn.confirm(given.oldPassword, of: principal, field: "oldPassword")
                let hash = try await signIn.hash(given.password, of: name, from: request.source)
                _ = try await database.run(
                    AccountStore.setPassword(hash, of: name, sparing: principal.token.digest, by: principal.actor))
                return .done
            },
        ] + secondFactor
    }

    private var secondFactor: [Route] {
        [
            Route(
                method: .post, pattern: RoutePattern("/api/v1/me/second-factor"), access: .signedIn,
                needsPassword: true,
                summary: "Creates a secret for an authenticator app; a code must confirm it.",
                example: AnswerExamples.secondFactor
            ) { request throws(ConsoleFault) in
                let name = try request.signedIn().account.name
                let secret = RandomBytes.make(20)
                let text = TimeCode.text(of: secret)
                return .json([
                    "secret": HexText.of(secret), "text": text,
                    "address": "otpauth://totp/MSS:\(name)?secret=\(text)&issuer=MSS",
                ])
            },
            Route(
                method: .put, pattern: RoutePattern("/api/v1/me/second-factor"), access: .signedIn,
                needsPassword: true, summary: "Sets the second factor: a sign-in then needs a code of this secret.",
                inputs: [
                    RouteInput("secret", required: true, "The secret, as returned."),
                    RouteInput("code", required: true, "The code that the authenticator app shows now."),
                    RouteInput("currentCode", "The code of the second factor that is replaced, when there is one."),
                ]
            ) { request throws(ConsoleFault) in
                let principal = try request.signedIn()
                let given = try request.input(SecondFactor.self)
                guard let secret = HexText.bytes(of: given.secret), secret.count == 20 else { throw .notJSON }
                let name = principal.account.name
                try await signIn.confirmCode(given.currentCode, of: principal, field: "currentCode")
                let (sealed, step) = try signIn.sealed(secret, code: given.code, of: name)
                _ = try await database.run(
                    AccountStore.setSecondFactor(sealed, step: step, of: name, by: principal.actor))
                return .done
            },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/me/second-factor/remove"), access: .signedIn,
                needsPassword: true, summary: "Removes the second factor: a sign-in then needs the password only.",
                inputs: [RouteInput("code", required: true, "The code that the authenticator app shows now.")]
            ) { request throws(ConsoleFault) in
                let principal = try request.signedIn()
                let code = try request.input(Code.self).code
                try await signIn.confirmCode(code, of: principal, field: "code")
                _ = try await database.run(
                    AccountStore.setSecondFactor([], step: 0, of: principal.account.name, by: principal.actor))
                return .done
            },
        ]
    }

    private func me(_ request: ConsoleRequest) throws(ConsoleFault) -> Me {
        let account = try request.signedIn().account
        return Me(
            account: account.name, language: request.language.rawValue, roles: account.rolesByInstance,
            secondFactor: account.hasSecondFactor, keepsSecondFactors: signIn.keepsSecondFactors,
            mustEnrol: requiresSecondFactor && account.mayChange && !account.hasSecondFactor,
            isEnglish: request.language == .english, isChinese: request.language == .chinese,
            grants: AccountRoutes.grants(of: account, request.words))
    }
}
