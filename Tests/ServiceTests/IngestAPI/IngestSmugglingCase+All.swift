extension IngestSmugglingCase {
    /// All cases.
    static let all: [Self] = [
        lengths, encodings, lines, characters, hosts, targets, versions, chunkForms, ends, sizes,
    ].flatMap { $0 }

    private static func cases(_ cases: [(String, String)], _ status: Int = 400) -> [Self] {
        cases.map { Self(name: $0.0, bytes: $0.1, status: status) }
    }

    private static func hasLength(_ text: String) -> String { head("Content-Length: " + text + "\r\n") + json }

    private static func encoded(_ text: String) -> String { head("Transfer-Encoding: " + text + "\r\n") + whole }

    private static let count = json.utf8.count

    private static let lengths: [Self] =
        cases([
            ("the same length twice", push(length)), ("two lengths", push("Content-Length: 0\r\n")),
            ("a list of equal lengths", hasLength("\(count), \(count)")), ("a list of lengths", hasLength("0, 71")),
            ("a signed length", hasLength("+\(count)")), ("a negative length", hasLength("-1")),
            ("a hexadecimal length", hasLength("0x47")), ("an empty length", hasLength("")),
            ("a length with a unit", hasLength("\(count)b")), ("a length with a gap", hasLength("7 1")),
            ("a length beyond 64 bits", hasLength("18446744073709551687")), ("a fraction", hasLength("71.0")),
            ("digits that are not ASCII", hasLength("٧١")), ("a quoted length", hasLength("\"71\"")),
            ("white space before the colon of a length", head("Content-Length : \(count)\r\n") + json),
        ]) + cases([("the largest length", hasLength("9223372036854775807"))], 413)
        + cases([("no length", head("") + json), ("no length in HTTP/1.0", head("", line: old) + json)], 411)

    private static let old = "POST \(target) HTTP/1.0"

    private static let encodings: [Self] = cases([
        ("encoding and length", head("Transfer-Encoding: chunked\r\n" + length) + whole),
        ("length and encoding", head(length + "Transfer-Encoding: chunked\r\n") + whole),
        ("gzip before chunked", encoded("gzip, chunked")), ("identity after chunked", encoded("chunked, identity")),
        ("identity", encoded("identity")), ("identity and length", push("Transfer-Encoding: identity\r\n")),
        ("an unknown encoding", encoded("xchunked")),
        ("an unknown encoding and length", push("Transfer-Encoding: xchunked\r\n")),
        ("a quoted encoding", encoded("\"chunked\"")), ("an encoding with a parameter", encoded("chunked;a=b")),
        ("chunked in a list twice", encoded("chunked, chunked")),
        ("chunked in two fields", head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n") + whole),
        ("an empty encoding", push("Transfer-Encoding: \r\n")),
        ("a vertical tab before the encoding", encoded("\u{B}chunked")),
        ("a folded encoding", encoded("\r\n chunked")),
        ("white space before the colon of an encoding", head("Transfer-Encoding : chunked\r\n") + whole),
        ("a tab before the colon of an encoding", head("Transfer-Encoding\t: chunked\r\n") + whole),
        ("an encoding in HTTP/1.0", head("Transfer-Encoding: chunked\r\n", line: old) + whole),
    ])

    private static let lines: [Self] = cases([
        ("a folded field", push("X-A: a\r\n b\r\n")), ("a field folded with a tab", push("X-A: a\r\n\tb\r\n")),
        ("a fold before any field", line + "\r\n X-A: a\r\n" + "Host: t\r\n" + length + "\r\n" + json),
        ("bare LF everywhere", line + "\nHost: t\nContent-Type: application/json\nContent-Length: 71\n\n" + json),
        ("bare LF after one field", push("X-A: b\n")), ("bare LF after the request line", line + "\nHost: t\r\n\r\n"),
        ("bare LF at the end of the head", line + "\r\nHost: t\r\n" + length + "\n" + json),
        ("bare CR in a value", push("X-A: a\rb\r\n")), ("bare CR between fields", push("X-A: b\r")),
        ("CR CR LF after a field", push("X-A: b\r\r\n")),
        ("CR CR LF at the end of the head", line + "\r\nHost: t\r\n" + length + "\r\r\n" + json),
        ("a field without a colon", push("X-A\r\n")), ("a field without a name", push(": b\r\n")),
    ])

    private static let characters: [Self] = cases([
        ("NUL in a name", push("X\0A: b\r\n")), ("NUL in a value", push("X-A: a\0b\r\n")),
        ("a control byte in a value", push("X-A: a\u{1}b\r\n")), ("DEL in a value", push("X-A: a\u{7F}b\r\n")),
        ("a space in a name", push("X A: b\r\n")), ("a bracket in a name", push("X(A): b\r\n")),
        ("a letter that is not ASCII in a name", push("X-é: b\r\n")),
        ("NUL in the target", push(line: "POST \(target)\0 HTTP/1.1")),
        ("a control byte in the target", push(line: "POST \(target)\u{1} HTTP/1.1")),
        ("a letter that is not ASCII in the target", push(line: "POST \(target)é HTTP/1.1")),
    ])

    private static func host(_ fields: String) -> String {
        line + "\r\n" + fields + "Content-Type: application/json\r\n" + length + "\r\n" + json
    }

    private static let hosts: [Self] = cases([
        ("no Host", host("")), ("two Hosts", host("Host: t\r\nHost: u\r\n")),
        ("the same Host twice", host("Host: t\r\nHost: t\r\n")), ("a list of Hosts", host("Host: t, u\r\n")),
        ("a Host with a user", host("Host: a@t\r\n")), ("a Host with a path", host("Host: t/x\r\n")),
        ("a Host with a space", host("Host: t u\r\n")), ("a Host with a scheme", host("Host: http://t\r\n")),
    ])

    private static let targets: [Self] =
        cases([
            ("an absolute target of another host", push(line: "POST http://evil\(target) HTTP/1.1")),
            ("an absolute target of another scheme and port", push(line: "POST https://t:81\(target) HTTP/1.1")),
            ("an authority as target", push(line: "POST t:80 HTTP/1.1")),
            ("a fragment in the target", push(line: "POST \(target)#a HTTP/1.1")),
            ("no target", push(line: "POST HTTP/1.1")),
            ("a tab between method and target", push(line: "POST\t/ HTTP/1.1")),
            ("a space before the method", " " + push()),
            ("a method in lower case", push(line: "post \(target) HTTP/1.1")),
            ("an unknown method", push(line: "SMUGGLE \(target) HTTP/1.1")),
        ])
        + cases(
            [
                ("CONNECT", "CONNECT t:80 HTTP/1.1\r\nHost: t\r\n\r\n"),
                ("OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n"),
                ("POST *", push(line: "POST * HTTP/1.1")), ("two slashes", push(line: "POST /\(target) HTTP/1.1")),
            ], 404) + cases([("TRACE", push(line: "TRACE \(target) HTTP/1.1"))], 405)

    private static let versions: [Self] = cases([
        ("HTTP/0.9", "GET /openapi.json\r\n\r\n"), ("HTTP/1", push(line: "POST \(target) HTTP/1")),
        ("HTTP/1.2", push(line: "POST \(target) HTTP/1.2")), ("HTTP/2.0", push(line: "POST \(target) HTTP/2.0")),
        ("HTTP/1.10", push(line: "POST \(target) HTTP/1.10")), ("HTTP/11.1", push(line: "POST \(target) HTTP/11.1")),
        ("HTP/1.1", push(line: "POST \(target) HTP/1.1")), ("http/1.1", push(line: "POST \(target) http/1.1")),
        ("more behind the version", push(line: line + " x")), ("a space behind the version", push(line: line + " ")),
        ("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("a TLS handshake", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0"), ("no HTTP at all", "nonsense\r\n\r\n"),
    ])

    private static let chunkForms: [Self] = cases([
        ("no chunk size", chunks("\r\n" + json + "\r\n0\r\n\r\n")),
        ("a chunk size of letters", chunks("zz\r\n" + json)),
        ("a chunk size with 0x", chunks("0x" + whole)), ("a signed chunk size", chunks("+" + whole)),
        ("a negative chunk size", chunks("-" + whole)), ("a space before a chunk size", chunks(" " + whole)),
        ("a space behind a chunk size", chunks(size + " \r\n" + json + "\r\n0\r\n\r\n")),
        ("a chunk size beyond 64 bits", chunks("10000000000000047\r\n" + json + "\r\n0\r\n\r\n")),
        ("LF behind a chunk size", chunks(size + "\n" + json + "\r\n0\r\n\r\n")),
        ("LF behind a chunk", chunks(size + "\r\n" + json + "\n0\r\n\r\n")),
        ("LF behind the last chunk", chunks(chunk + "0\n\n")),
        ("a chunk longer than its size", chunks("40\r\n" + json + "\r\n0\r\n\r\n")),
        ("no CRLF behind a chunk", chunks(size + "\r\n" + json + "0\r\n\r\n")),
        ("LF in a chunk extension", chunks(size + ";a=b\nc\r\n" + json + "\r\n0\r\n\r\n")),
        ("CR in a chunk extension", chunks(size + ";a\rb\r\n" + json + "\r\n0\r\n\r\n")),
        ("NUL in a chunk extension", chunks(size + ";\0\r\n" + json + "\r\n0\r\n\r\n")),
        ("a huge chunk extension", chunks(size + ";" + letters(300_000) + "\r\n" + json + "\r\n0\r\n\r\n")),
        ("a chunk size of many zeros", chunks(String(repeating: "0", count: 300_000) + whole)),
        ("a length as trailer", chunks(chunk + "0\r\nContent-Length: 5\r\n\r\n")),
        ("an encoding as trailer", chunks(chunk + "0\r\nTransfer-Encoding: chunked\r\n\r\n")),
        ("a trailer with a space in its name", chunks(chunk + "0\r\nX A: b\r\n\r\n")),
        ("a trailer without a colon", chunks(chunk + "0\r\nX\r\n\r\n")),
        ("a folded trailer", chunks(chunk + "0\r\nX: a\r\n b\r\n\r\n")),
    ])

    /// Cases that end the connection normally: the first request may be served, the following one never.
    private static let ends: [Self] =
        cases(
            [
                ("a request behind the last one", push("Connection: close\r\n")),
                ("a request behind one of HTTP/1.0", push(line: old)),
                ("Content-Length named in Connection", push("Connection: close, Content-Length\r\n")),
                (
                    "a request behind an offer of HTTP/2",
                    push("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n")
                ),
                ("a request behind an offer of WebSocket", push("Connection: Upgrade\r\nUpgrade: websocket\r\n")),
            ], 200)
        + cases([("a request behind an unknown path", push(line: "POST /x HTTP/1.1"))], 404)
        + cases([("a request behind a wrong method", push(line: "PUT \(target) HTTP/1.1"))], 405)
        + cases(
            [
                ("two content types", push("Content-Type: text/plain\r\n")),
                ("a request behind a compressed one", push("Content-Encoding: gzip\r\n")),
            ], 415)
        + cases(
            [
                (
                    "a request as the body of GET",
                    "GET /webapi/sync/trace HTTP/1.1\r\nHost: t\r\n" + length + "\r\n" + json
                )
            ], 413)

    private static let sizes: [Self] =
        cases(
            [
                ("a length too large", head("Content-Length: 70000\r\n") + letters(70_000)),
                ("a chunk too large", chunks("10001\r\n" + letters(65_537) + "\r\n0\r\n\r\n")),
            ], 413)
        + cases(
            [
                ("a field too long", push("X-A: " + letters(20_000) + "\r\n")),
                ("100,000 small fields", push(String(repeating: "a:b\r\n", count: 100_000))),
                ("200 trailers", chunks(chunk + "0\r\n" + String(repeating: "X: y\r\n", count: 200) + "\r\n")),
            ], 431) + cases([("a target too long", push(line: "POST /\(letters(40_000)) HTTP/1.1"))], 414)

    private static func letters(_ count: Int) -> String { String(repeating: "x", count: count) }
}
