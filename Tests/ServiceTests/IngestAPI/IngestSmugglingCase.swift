/// Bytes of an attacker or a broken client, and the one permitted answer.
struct IngestSmugglingCase: Sendable {
    let name: String
    /// A push with thirdMsgId `first`, which may be malformed. The requests after it must not be served.
    let bytes: String
    var status = 400

    /// The head of a push with these header fields besides Host and Content-Type.
    static func head(_ fields: String, line: String = line) -> String {
        line + "\r\nHost: t\r\nContent-Type: application/json\r\n" + fields + "\r\n"
    }

    /// A complete push with these additional header fields.
    static func push(_ fields: String = "", line: String = line) -> String {
        head(fields + length, line: line) + json
    }

    /// A push whose body is sent as these chunks.
    static func chunks(_ chunks: String) -> String { head("Transfer-Encoding: chunked\r\n") + chunks }

    /// A correct push that follows a malformed one.
    static let smuggled = push().replacing("first", with: "smug_")

    static let line = "POST \(target) HTTP/1.1"
    static let target = "/webapi/sync/single?instanceId=w_app"
    static let json = #"{"bizType":"orders","linkToken":"u","thirdMsgId":"first","payload":"p"}"#
    static let length = "Content-Length: \(json.utf8.count)\r\n"
    /// The body as one chunk, without the last chunk.
    static let chunk = "\(size)\r\n\(json)\r\n"
    static let size = String(json.utf8.count, radix: 16)
    static let whole = chunk + "0\r\n\r\n"
}
