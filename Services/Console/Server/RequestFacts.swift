import Foundation
import Hummingbird

/// The parts of a request's head that routing and authorization read; pure.
struct RequestFacts: Sendable {
    let method: String
    /// Path and query as received.
    let target: String
    /// The target without the query.
    let path: String
    let query: [String: String]
    let authorization: String?
    let cookies: String?
    let formToken: String?
    let origin: String?
    let fetchSite: String?
    let host: String?
    let language: String?
    /// The value of X-Forwarded-For.
    let forwardedFor: String?

    init(_ head: HTTPRequest) {
        method = head.method.rawValue
        target = head.path ?? "/"
        path = String(target.prefix { $0 != "?" })
        query = Self.values(of: target.dropFirst(path.count + 1))
        func field(_ name: String) -> String? { HTTPFields.Element.Name(name).flatMap { head.headerFields[$0] } }
        authorization = field("Authorization")
        cookies = field("Cookie")
        formToken = field("X-MSS-Form-Token")
        origin = field("Origin")
        fetchSite = field("Sec-Fetch-Site")
        host = head.authority
        language = field("Accept-Language")
        forwardedFor = field("X-Forwarded-For")
    }

    private static func values(of query: Substring) -> [String: String] {
        var values: [String: String] = [:]
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[1].isEmpty,
                let name = String(parts[0]).removingPercentEncoding,
                let value = parts[1].replacing("+", with: "%20").removingPercentEncoding, values[name] == nil
            else { continue }
            values[name] = value
        }
        return values
    }

    /// The session token of the request: of the header Authorization, otherwise of the cookie.
    var session: (token: SessionToken, proof: RequestPrincipal.Proof)? {
        if let authorization, authorization.lowercased().hasPrefix("bearer ") {
            return SessionToken(text: authorization.dropFirst(7)).map { ($0, .bearer) }
        }
        for cookie in (cookies ?? "").split(separator: ";") {
            let pair = cookie.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
            if pair.count == 2, pair[0] == SessionCookie.name, let token = SessionToken(text: pair[1]) {
                return (token, .cookie)
            }
        }
        return nil
    }

    /// Whether a page of another site has sent the request, by Sec-Fetch-Site and Origin. False when a client sends
    /// neither.
    ///
    /// - Parameter ours: the console's own origin; nil: the origin of the Host field.
    func isCrossSite(origin ours: String?) -> Bool {
        if let fetchSite, fetchSite != "same-origin", fetchSite != "none" { return true }
        guard let origin else { return false }
        if let ours { return origin.lowercased() != ours }
        return host.map { origin != "http://\($0)" && origin != "https://\($0)" } ?? true
    }

    /// The value of a cookie that a page has set.
    func cookie(_ name: String) -> String? {
        (cookies ?? "").split(separator: ";").lazy.map { $0.drop { $0 == " " } }
            .first { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.count + 1)) }
    }
}
