import Foundation
import Hummingbird
import Logging
import NIOCore
import ServiceKit
import SyncModel

/// Answers requests with an asset, a route's answer or a refusal. Adds security headers and a request id to each.
struct ConsoleResponder: HTTPResponder {
    typealias Context = ConsoleContext

    /// The longest body in bytes. The longest form has a payload of 4,096 characters, which JSON can escape to six
    /// bytes each.
    static let bodyBytes = 64 * 1_024

    let routes: [Route]
    let sessions: Sessions
    let renderer: PageRenderer
    let health: HealthState
    let isTLS: Bool
    var rules = EntryRules()
    let logger: Logger

    /// Does not throw, because the server would answer an error in a form of its own.
    func respond(to request: Request, context: ConsoleContext) async -> Response {
        let facts = RequestFacts(request.head)
        let requestID = UUID().uuidString.lowercased()
        return await RequestName.$current.withValue(requestID) { await respond(to: request, facts, requestID, context) }
    }

    private func respond(
        to request: Request, _ facts: RequestFacts, _ requestID: String, _ context: ConsoleContext
    ) async -> Response {
        let source = rules.source(peer: context.source, forwarded: facts.forwardedFor)
        if facts.method == "GET", let asset = Asset.all[facts.path] { return response(asset, to: request, requestID) }
        let principal: RequestPrincipal?
        do throws(ConsoleFault) {
            principal = try await sessions.principal(facts.session, from: source)
        } catch {
            let consoleRequest = makeConsoleRequest(facts, [:], [], nil, source, requestID)
            return response(problem(error, consoleRequest, facts), consoleRequest)
        }
        do throws(ConsoleFault) {
            let (route, parts) = try route(of: facts)
            try RequestAuthorization.check(
                route, facts, principal, instance: parts["instance"].map(InstanceID.init), rules: rules)
            let body = try await body(of: request)
            let consoleRequest = makeConsoleRequest(facts, parts, body, principal, source, requestID)
            do throws(ConsoleFault) {
                try InputForm.check(route, parts: parts, query: facts.query, body: body)
                return response(try await route.answer(consoleRequest), consoleRequest)
            } catch {
                return response(problem(error, consoleRequest, facts), consoleRequest)
            }
        } catch {
            let consoleRequest = makeConsoleRequest(facts, [:], [], principal, source, requestID)
            return response(problem(error, consoleRequest, facts), consoleRequest)
        }
    }

    private func route(of facts: RequestFacts) throws(ConsoleFault) -> (Route, [String: String]) {
        let path = facts.path.split(separator: "/", omittingEmptySubsequences: true)
        var isKnown = false
        for route in routes {
            guard let parts = route.pattern.match(path) else { continue }
            if route.method.rawValue == facts.method || (facts.method == "HEAD" && route.method == .get) {
                return (route, parts)
            }
            isKnown = true
        }
        throw isKnown ? .wrongMethod : .noSuchPage
    }

    private func body(of request: Request) async throws(ConsoleFault) -> [UInt8] {
        var body: [UInt8] = []
        do {
            for try await part in request.body {
                body.append(contentsOf: part.readableBytesView)
                if body.count > Self.bodyBytes { throw ConsoleFault.tooLong }
            }
        } catch let error as ConsoleFault {
            throw error
        } catch {
            throw .notJSON
        }
        return body
    }

    private func makeConsoleRequest(
        _ facts: RequestFacts, _ parts: [String: String], _ body: [UInt8], _ principal: RequestPrincipal?,
        _ source: String, _ requestID: String
    ) -> ConsoleRequest {
        let chosen = [principal?.account.language, facts.cookie("mss-language")].compactMap { $0 }
            .compactMap(Language.init).first
        return ConsoleRequest(
            method: Method(rawValue: facts.method) ?? .get, path: facts.path, parts: parts, query: facts.query,
            body: body, principal: principal, language: chosen ?? Language(accepting: facts.language),
            lastInstance: facts.cookie("mss-instance")?.removingPercentEncoding,
            source: source, requestID: requestID)
    }

    // MARK: Answers

    /// The answer for a refusal: JSON under `/api/`, otherwise a page or a redirect.
    private func problem(_ fault: ConsoleFault, _ consoleRequest: ConsoleRequest, _ facts: RequestFacts)
        -> ConsoleAnswer
    {
        logRefusal(fault, consoleRequest)
        var headers = fault.retryAfter.map { [("Retry-After", "\($0)")] } ?? []
        if fault == .signedOut, facts.session != nil { headers.append(SessionCookie.removal) }
        let detail =
            fault.isSentence ? SentenceTranslations.text(fault.detail, in: consoleRequest.language) : fault.detail
        let words = consoleRequest.words.text(fault.word, detail)
        guard !consoleRequest.path.hasPrefix("/api/") else {
            var answer = ConsoleAnswer.json(
                Problem(code: fault.code, detail: words, field: fault.field, requestId: consoleRequest.requestID),
                status: fault.status)
            answer.headers += headers
            return answer
        }
        if fault == .signedOut {
            let next = facts.target == "/" ? nil : facts.target
            var answer = ConsoleAnswer.redirect(to: "/sign-in\(Paths.query([("next", next)]))")
            answer.headers += headers
            return answer
        }
        if fault == .secondFactorNeeded { return ConsoleAnswer.redirect(to: "/me") }
        var answer = ConsoleAnswer.page(
            PageContent(
                template: "problem", title: "title.problem",
                content: ProblemPage(status: fault.status, detail: words, requestID: consoleRequest.requestID)))
        answer.status = fault.status
        answer.headers += headers
        return answer
    }

    /// Logs a refusal under its request id. The line never contains a query or input.
    private func logRefusal(_ fault: ConsoleFault, _ consoleRequest: ConsoleRequest) {
        guard fault.status >= 400 else { return }
        logger.log(
            level: fault.status >= 500 ? .warning : .info, "refused a request",
            metadata: [
                "request_id": "\(consoleRequest.requestID)", "status": "\(fault.status)", "code": "\(fault.code)",
                "method": "\(consoleRequest.method.rawValue)", "path": "\(consoleRequest.path)",
                "source": "\(consoleRequest.source)",
                "account": "\(consoleRequest.principal?.account.name ?? "")",
            ])
    }

    private func response(_ answer: ConsoleAnswer, _ consoleRequest: ConsoleRequest) -> Response {
        var headers = headers(consoleRequest.requestID, SecurityHeaders.notKept)
        for (name, value) in answer.headers {
            if let name = HTTPFields.Element.Name(name) { headers.append(HTTPFields.Element(name: name, value: value)) }
        }
        let body: ResponseBody
        switch answer.body {
        case .none: body = ResponseBody()
        case .bytes(let bytes, let type):
            headers[.contentType] = type
            body = ResponseBody(byteBuffer: ByteBuffer(bytes: bytes))
        case .page(let content):
            headers[.contentType] = "text/html; charset=utf-8"
            body = ResponseBody(byteBuffer: ByteBuffer(string: renderer.html(content, for: consoleRequest)))
        case .stream(let type, let pieces):
            headers[.contentType] = type
            body = ResponseBody { writer in
                for await piece in pieces { try await writer.write(ByteBuffer(string: piece)) }
                try await writer.finish(nil)
            }
        }
        if health.isDraining { headers[.connection] = "close" }
        return Response(status: .init(code: answer.status), headers: headers, body: body)
    }

    private func response(_ asset: Asset, to request: Request, _ requestID: String) -> Response {
        var headers = headers(requestID, SecurityHeaders.kept)
        headers[.eTag] = asset.tag
        if request.headers[.ifNoneMatch] == asset.tag { return Response(status: .notModified, headers: headers) }
        headers[.contentType] = asset.type
        return Response(status: .ok, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: asset.bytes)))
    }

    private func headers(_ requestID: String, _ caching: (String, String)) -> HTTPFields {
        var headers = HTTPFields()
        let all =
            SecurityHeaders.all + [caching, ("X-Request-Id", requestID)] + (isTLS ? [SecurityHeaders.strict] : [])
        for (name, value) in all { if let name = HTTPFields.Element.Name(name) { headers[name] = value } }
        return headers
    }
}

/// A refusal in the API.
struct Problem: Encodable {
    let code: String
    let detail: String
    let field: String?
    let requestId: String
}

/// A refusal on a page.
struct ProblemPage: Sendable {
    let status: Int
    let detail: String
    let requestID: String
}

/// Hummingbird's context of a request, with the peer's address.
struct ConsoleContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The peer's address, without its port.
    let source: String

    init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        self.source = source.channel.remoteAddress?.ipAddress ?? ""
    }
}

/// The name of the current request in responses and logs.
enum RequestName {
    /// Empty outside of a request.
    @TaskLocal static var current = ""
}

/// A file that pages load, embedded in the binary.
struct Asset: Sendable {
    let type: String
    let bytes: [UInt8]
    /// The entity tag of the content (HTTP's ETag).
    let tag: String

    private init(_ type: String, _ bytes: [UInt8]) {
        self.type = type
        self.bytes = bytes
        // FNV-1a; the tag must differ when the content differs.
        let hash = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        tag = "\"\(String(hash, radix: 16))\""
    }

    /// Files by path.
    static let all = [
        "/assets/console.css": Asset("text/css; charset=utf-8", PackageResources.console_css),
        "/assets/console.js": Asset("text/javascript; charset=utf-8", PackageResources.console_js),
        "/assets/icon.svg": Asset("image/svg+xml", PackageResources.icon_svg),
    ]
}
