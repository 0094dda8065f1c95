import Testing

@testable import SessionValidator
@testable import TenantCalls

@Suite("The spelling of callouts")
struct ValidatorURLTests {
    /// A URL and a part of its refusal text, which shows that this check refused it and not another one.
    static let faults: [(String, String)] = [
        ("https://a.example/" + String(repeating: "x", count: 2_031), "longer than"),
        ("http://a.example/a b", "character"), ("http://a.example/\r\nX: y", "character"),
        ("http://a.example\\@b.example/", "character"), ("http://a.example/é", "character"),
        ("http://ａ.example/", "character"), ("http://a.example/\u{0}", "character"),
        ("http://a.example/\"", "character"),
        ("http://a.example/#x", "fragment"), ("http://a.example#@b.example/", "fragment"),
        ("ftp://a.example/", "neither with https"), ("http+unix://a.example/", "neither with https"),
        ("//a.example/", "neither with https"), ("http:/a.example/", "neither with https"),
        ("a.example:80", "neither with https"), ("javascript:alert(1)", "neither with https"),
        ("http://u@a.example/", "user"), ("http://u:p@a.example/", "user"), ("http://@a.example/", "user"),
        ("http://a.example:80@b.example/", "user"),
        ("http://[::1]80/", "behind the host"), ("http://[::1/", "] is missing"),
        ("http://a.example:/", "port"), ("http://a.example:0/", "port"), ("http://a.example:080/", "port"),
        ("http://a.example:+80/", "port"), ("http://a.example:65536/", "port"), ("http://a.example:80:80/", "port"),
        ("http://[127.0.0.1]/", "no IPv6"), ("http://[::1%25lo]/", "no IPv6"), ("http://[a.example]/", "no IPv6"),
        ("http://127.1/", "four decimal"), ("http://2130706433/", "four decimal"),
        ("http://0177.0.0.1/", "four decimal"),
        ("http://127.0.0.0x1/", "four decimal"), ("http://a.example./", "four decimal"), ("http:///x", "four decimal"),
        ("http://-a.example/", "no DNS name"), ("http://a-.example/", "no DNS name"),
        ("http://a..example/", "no DNS name"),
        ("http://a_b.example/", "no DNS name"), ("http://*.example/", "no DNS name"),
        ("http://%61.example/", "no DNS name"),
        ("http://" + String(repeating: "a", count: 64) + ".example/", "no DNS name"),
        ("http://a.example/%", "% without"), ("http://a.example/%1", "% without"),
        ("http://a.example/%zz", "% without"),
        ("http://a.example/?%0", "% without"),
    ]

    @Test(
        "SEC12: an ambiguous URL is refused, each fault by its own check", arguments: faults)
    func fault(_ row: (url: String, words: String)) {
        #expect {
            try CalloutURL(row.url)
        } throws: { error in
            "\(error)".contains(row.words)
        }
    }
}
