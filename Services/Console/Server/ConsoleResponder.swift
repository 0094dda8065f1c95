import Foundation
import Hummingbird
import Logging
import NIOCore
import ServiceKit
import SyncModel

/// Where a request goes: asset, route or refusal; every answer with its security headers and request id.
struct ConsoleResponder: HTTPResponder {
    typealias Context = ConsoleContext

    /// A body is a form: the longest has a payload of 4,096 characters, each of six bytes as JSON may escape it.
    static let bodyBytes = 64 * 1_024

    let routes: [Route]
    let sessions: Sessions
    let renderer: PageRenderer
    let health: HealthState
    let isTLS: Bool
    var rules = EntryRules()
    let logger: Logger

    /// Throws nothing: what the server made of an error would not have the console's form.
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
        let visitor: Visitor?
        do throws(ConsoleFault) {
            visitor = try await sessions.visitor(facts.session, from: source)
        } catch {
            let exchange = exchange(facts, [:], [], nil, source, requestID)
            return response(problem(error, exchange, facts), exchange)
        }
        do throws(ConsoleFault) {
            let (route, parts) = try route(of: facts)
            try Gate.check(route, facts, visitor, instance: parts["instance"].map(InstanceID.init), rules: rules)
            let body = try await body(of: request)
            let exchange = exchange(facts, parts, body, visitor, source, requestID)
            do throws(ConsoleFault) {
                try InputForm.check(route, parts: parts, query: facts.query, body: body)
                return response(try await route.answer(exchange), exchange)
            } catch {
                return response(problem(error, exchange, facts), exchange)
            }
        } catch {
            let exchange = exchange(facts, [:], [], visitor, source, requestID)
            return response(problem(error, exchange, facts), exchange)
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

    private func exchange(
        _ facts: RequestFacts, _ parts: [String: String], _ body: [UInt8], _ visitor: Visitor?,
        _ source: String, _ requestID: String
    ) -> Exchange {
        let chosen = [visitor?.account.language, facts.cookie("mss-language")].compactMap { $0 }
            .compactMap(Language.init).first
        return Exchange(
            method: Method(rawValue: facts.method) ?? .get, path: facts.path, parts: parts, query: facts.query,
            body: body, visitor: visitor, language: chosen ?? Language(accepting: facts.language),
            lastInstance: facts.cookie("mss-instance")?.removingPercentEncoding,
            source: source, requestID: requestID)
    }

    // MARK: Answers

    /// A program gets JSON; a person a page, or the way to the sign-in.
    private func problem(_ fault: ConsoleFault, _ exchange: Exchange, _ facts: RequestFacts) -> ConsoleAnswer {
        note(fault, exchange)
        var headers = fault.retryAfter.map { [("Retry-After", "\($0)")] } ?? []
        if fault == .signedOut, facts.session != nil { headers.append(SessionCookie.removal) }
        let detail = fault.isSentence ? Sentences.text(fault.detail, in: exchange.language) : fault.detail
        let words = exchange.words.text(fault.word, detail)
        guard !exchange.path.hasPrefix("/api/") else {
            var answer = ConsoleAnswer.json(
                Problem(code: fault.code, detail: words, field: fault.field, requestId: exchange.requestID),
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
                content: ProblemPage(status: fault.status, detail: words, requestID: exchange.requestID)))
        answer.status = fault.status
        answer.headers += headers
        return answer
    }

    /// Whoever reports a refusal names its request, and it is found here; never with a query or what was typed.
    private func note(_ fault: ConsoleFault, _ exchange: Exchange) {
        guard fault.status >= 400 else { return }
        logger.log(
            level: fault.status >= 500 ? .warning : .info, "a request was refused",
            metadata: [
                "request_id": "\(exchange.requestID)", "status": "\(fault.status)", "code": "\(fault.code)",
                "method": "\(exchange.method.rawValue)", "path": "\(exchange.path)", "source": "\(exchange.source)",
                "account": "\(exchange.visitor?.account.name ?? "")",
            ])
    }

    private func response(_ answer: ConsoleAnswer, _ exchange: Exchange) -> Response {
        var headers = headers(exchange.requestID, SecurityHeaders.notKept)
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
            body = ResponseBody(byteBuffer: ByteBuffer(string: renderer.html(content, for: exchange)))
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

/// A refusal as the API says it.
struct Problem: Encodable {
    let code: String
    let detail: String
    let field: String?
    let requestId: String
}

/// A refusal as a page says it.
struct ProblemPage: Sendable {
    let status: Int
    let detail: String
    let requestID: String
}
