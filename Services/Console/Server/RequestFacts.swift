import Foundation
import Hummingbird

/// What the head of a request says that decides whether it is taken at all; pure.
struct RequestFacts: Sendable {
    let method: String
    /// Path and query as they were sent.
    let target: String
    /// Without query.
    let path: String
    let query: [String: String]
    let authorization: String?
    let cookies: String?
    let formToken: String?
    let origin: String?
    let fetchSite: String?
    let host: String?
    let language: String?
    /// Where proxies say that the request comes from.
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

    /// The session that the request shows: a program's header before a browser's cookie.
    var session: (token: SessionToken, proof: Visitor.Proof)? {
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

    /// Whether a page of another site has sent this: what a browser says of itself, where it says something.
    ///
    /// - Parameter ours: the console's own origin; nil: whatever the Host field says.
    func isFromElsewhere(than ours: String?) -> Bool {
        if let fetchSite, fetchSite != "same-origin", fetchSite != "none" { return true }
        guard let origin else { return false }
        if let ours { return origin.lowercased() != ours }
        return host.map { origin != "http://\($0)" && origin != "https://\($0)" } ?? true
    }

    /// What a page told the browser to keep: the language, the instance.
    func cookie(_ name: String) -> String? {
        (cookies ?? "").split(separator: ";").lazy.map { $0.drop { $0 == " " } }
            .first { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.count + 1)) }
    }
}
