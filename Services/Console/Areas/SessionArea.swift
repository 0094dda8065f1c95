import Credentials
import Crypto
import Foundation
import SyncModel
import SyncStore

/// Signing in and out, invitations, and what people set for themselves (reliability SEC13, SEC14).
struct SessionArea: Sendable {
    let database: Database
    let sessions: Sessions
    let signIn: SignIn
    /// Whether whoever may change anything needs a second factor.
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

    /// A session as a program needs it.
    struct Started: Encodable {
        let token: String
        let account: String
    }

    /// Who is signed in.
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
        let grants: [AccountArea.Grant]

        private enum CodingKeys: String, CodingKey { case account, language, roles, secondFactor }
    }

    /// The page on which an invitation is used.
    struct ChoosePassword: Sendable {
        let isSetup: Bool
        let shortest: Int
    }

    /// The sign-in page.
    struct SignInPage: Sendable { let next: String }

    var routes: [Route] { entering + invitations + own }

    private var entering: [Route] {
        [
            Route(method: .get, pattern: RoutePattern("/sign-in"), access: .open, summary: "The sign-in.") {
                exchange throws(ConsoleFault) in
                // Only a path of this console: never a page of somebody else's.
                let next = exchange.query["next"] ?? "/"
                let isOurs = Self.isOurs(Array(next.utf8))
                return .page(
                    PageContent(
                        template: "sign-in", title: "title.signIn", content: SignInPage(next: isOurs ? next : "/")))
            },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/session"), access: .open,
                summary: "Signs in: sets a browser's cookie; a program sends the token as Authorization: Bearer.",
                inputs: [
                    RouteInput("name", required: true, "The account."),
                    RouteInput("password", required: true, "Its password."),
                    RouteInput("code", "Of the second factor, when the account has one."),
                ], example: AnswerExamples.session
            ) { exchange throws(ConsoleFault) in
                let given = try exchange.input(Credentials.self)
                let account = given.name.trimmed
                try await signIn.check(account, given.password, code: given.code, from: exchange.source)
                let token = try await sessions.begin(account, from: exchange.source)
                var answer = ConsoleAnswer.json(Started(token: token.text, account: account))
                answer.headers = [SessionCookie.set(token)]
                return answer
            },
            Route(
                method: .delete, pattern: RoutePattern("/api/v1/session"), access: .signedIn,
                summary: "Signs out, at every console at once."
            ) { exchange throws(ConsoleFault) in
                let visitor = try exchange.signedIn()
                try await database.run(ConsoleSessionStore.end(visitor.token.digest, by: visitor.actor))
                var answer = ConsoleAnswer.done
                answer.headers = [SessionCookie.removal]
                return answer
            },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/session/confirm"), access: .signedIn,
                summary: "Gives the password again, which what is hard to undo asks for; it holds for five minutes.",
                inputs: [RouteInput("password", required: true, "The account's password.")]
            ) { exchange throws(ConsoleFault) in
                let visitor = try exchange.signedIn()
                let given = try exchange.input(Password.self)
                try await signIn.confirm(given.password, of: visitor, field: "password")
                try await database.run(ConsoleSessionStore.confirm(visitor.token.digest))
                return .done
            },
        ]
    }

    /// Whether it is a path of this host, byte by byte: browsers pass over tabs and line ends, take `\\` for `/`, and
    /// two slashes at the beginning name another host.
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
                summary: "Uses an invitation: sets the password of the account that was invited.",
                inputs: [
                    RouteInput("token", required: true, "The invitation's; good once."),
                    RouteInput("name", "Of the first administrator's account, which is made."),
                    RouteInput("password", required: true, "12 to 256 characters."),
                ]
            ) { exchange throws(ConsoleFault) in try await use(try exchange.input(Invitation.self), exchange) },
        ]
    }

    private func choosePassword(isSetup: Bool) -> ConsoleAnswer {
        .page(
            PageContent(
                template: "choose-password", title: isSetup ? "title.setup" : "title.choosePassword",
                content: ChoosePassword(isSetup: isSetup, shortest: SignIn.passwordUnits.lowerBound)))
    }

    private func use(_ given: Invitation, _ exchange: Exchange) async throws(ConsoleFault) -> ConsoleAnswer {
        guard let token = SessionToken(text: given.token.trimmed),
            let invited = try await database.run(AccountStore.invited(by: token.digest))
        else { throw .invitationGone }
        let name = invited.isEmpty ? (given.name ?? "").trimmed : invited
        let administrator = ConsoleAccount(name: name, grants: [ConsoleAccount.everyInstance: .administrator])
        if invited.isEmpty, administrator.fault != nil { throw .wrong("name", "fault.accountName") }
        let hash = try await signIn.hash(given.password, of: name, from: exchange.source)
        // Two that use it at once: one of them comes too late.
        let use = AccountStore.use(invitation: token.digest, for: name, hash: hash, from: exchange.source)
        guard try await database.run(use) else { throw .invitationGone }
        return .done
    }

    // MARK: One's own

    private var own: [Route] {
        [
            Route(method: .get, pattern: RoutePattern("/me"), access: .signedIn, summary: "One's own account.") {
                exchange throws(ConsoleFault) in
                .page(PageContent(template: "me", title: "title.me", content: try me(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1/session"), access: .signedIn, summary: "Who is signed in.",
                example: AnswerExamples.me
            ) { exchange throws(ConsoleFault) in .json(try me(exchange)) },
            Route(
                method: .put, pattern: RoutePattern("/api/v1/me/language"), access: .signedIn,
                summary: "The language of one's pages.", inputs: [RouteInput("language", required: true, "en or zh.")]
            ) { exchange throws(ConsoleFault) in
                let choice = try exchange.input(LanguageChoice.self).language
                guard Language(rawValue: choice) != nil else { throw .wrong("language", "fault.choice", "en, zh") }
                _ = try await database.run(
                    AccountStore.setLanguage(choice, of: try exchange.signedIn().account.name))
                return .done
            },
            Route(
                method: .put, pattern: RoutePattern("/api/v1/me/password"), access: .signedIn,
                summary: "A new password; every other session of the account ends.",
                inputs: [
                    RouteInput("oldPassword", required: true, "The one so far."),
                    RouteInput("password", required: true, "12 to 256 characters."),
                ]
            ) { exchange throws(ConsoleFault) in
                let visitor = try exchange.signedIn()
                let given = try exchange.input(PasswordChange.self)
                let name = visitor.account.name
                try await signIn.confirm(given.oldPassword, of: visitor, field: "oldPassword")
                let hash = try await signIn.hash(given.password, of: name, from: exchange.source)
                _ = try await database.run(
                    AccountStore.setPassword(hash, of: name, sparing: visitor.token.digest, by: visitor.actor))
                return .done
            },
        ] + secondFactor
    }

    private var secondFactor: [Route] {
        [
            Route(
                method: .post, pattern: RoutePattern("/api/v1/me/second-factor"), access: .signedIn,
                needsPassword: true,
                summary: "A new secret for an authenticator app; it counts once a code confirms it.",
                example: AnswerExamples.secondFactor
            ) { exchange throws(ConsoleFault) in
                let name = try exchange.signedIn().account.name
                let secret = RandomBytes.make(20)
                let text = TimeCode.text(of: secret)
                return .json([
                    "secret": HexText.of(secret), "text": text,
                    "address": "otpauth://totp/MSS:\(name)?secret=\(text)&issuer=MSS",
                ])
            },
            Route(
                method: .put, pattern: RoutePattern("/api/v1/me/second-factor"), access: .signedIn,
                needsPassword: true, summary: "From now on a sign-in takes a code of this secret.",
                inputs: [
                    RouteInput("secret", required: true, "As it was given."),
                    RouteInput("code", required: true, "That the app shows for it now."),
                    RouteInput("currentCode", "Of the second factor that is replaced, when there is one."),
                ]
            ) { exchange throws(ConsoleFault) in
                let visitor = try exchange.signedIn()
                let given = try exchange.input(SecondFactor.self)
                guard let secret = HexText.bytes(of: given.secret), secret.count == 20 else { throw .notJSON }
                let name = visitor.account.name
                try await signIn.confirmCode(given.currentCode, of: visitor, field: "currentCode")
                let (sealed, step) = try signIn.sealed(secret, code: given.code, of: name)
                _ = try await database.run(
                    AccountStore.setSecondFactor(sealed, step: step, of: name, by: visitor.actor))
                return .done
            },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/me/second-factor/remove"), access: .signedIn,
                needsPassword: true, summary: "A sign-in takes the password alone.",
                inputs: [RouteInput("code", required: true, "That the app shows now.")]
            ) { exchange throws(ConsoleFault) in
                let visitor = try exchange.signedIn()
                let code = try exchange.input(Code.self).code
                try await signIn.confirmCode(code, of: visitor, field: "code")
                _ = try await database.run(
                    AccountStore.setSecondFactor([], step: 0, of: visitor.account.name, by: visitor.actor))
                return .done
            },
        ]
    }

    private func me(_ exchange: Exchange) throws(ConsoleFault) -> Me {
        let account = try exchange.signedIn().account
        return Me(
            account: account.name, language: exchange.language.rawValue, roles: account.rolesByInstance,
            secondFactor: account.hasSecondFactor, keepsSecondFactors: signIn.keepsSecondFactors,
            mustEnrol: requiresSecondFactor && account.mayChange && !account.hasSecondFactor,
            isEnglish: exchange.language == .english, isChinese: exchange.language == .chinese,
            grants: AccountArea.grants(of: account, exchange.words))
    }
}
