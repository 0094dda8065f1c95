/// What every answer says about how a browser may use it (reliability SEC13).
enum SecurityHeaders {
    /// Only what comes from here runs, shows, or is asked; nobody frames it.
    static let all: [(String, String)] = [
        (
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                + "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        ),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]

    /// Pages and data are nobody's to keep.
    static let notKept = ("Cache-Control", "no-store")
    /// Style and script: looked at anew each time, kept while they are the same.
    static let kept = ("Cache-Control", "no-cache")
    /// Only over TLS: from then on a browser comes by TLS alone.
    static let strict = ("Strict-Transport-Security", "max-age=31536000")
}
