/// The cookie that has a browser's session (reliability SEC13).
enum SessionCookie {
    /// With this prefix browsers take it only when it is Secure, of this host alone, and for every path.
    static let name = "__Host-mss-session"
    private static let attributes = "Path=/; Secure; HttpOnly; SameSite=Strict"

    /// Sets it.
    static func set(_ token: SessionToken) -> (String, String) {
        ("Set-Cookie", "\(name)=\(token.text); \(attributes)")
    }

    /// Takes it back.
    static let removal = ("Set-Cookie", "\(name)=; Max-Age=0; \(attributes)")
}
