import Foundation
import SyncModel

/// One answer as received from a socket.
struct IngestRawAnswer: Sendable {
    let status: Int
    /// The header fields by lower-case name.
    let fields: [String: String]
    let body: String

    /// Parses the received answers in order. Bytes that are not an answer end the list with status 0.
    static func all(in bytes: [UInt8]) -> [Self] {
        var answers: [Self] = []
        var rest = Data(bytes)
        while !rest.isEmpty {
            guard let end = rest.firstRange(of: Data("\r\n\r\n".utf8)) else { return answers + [.none] }
            let lines = String(decoding: rest[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
            let words = lines[0].components(separatedBy: " ")
            guard words[0] == "HTTP/1.1", words.count > 1, let status = Int(words[1]) else { return answers + [.none] }
            let fields = lines.dropFirst().map { $0.components(separatedBy: ": ") }.map {
                ($0[0].lowercased(), $0.dropFirst().joined(separator: ": "))
            }
            let named = Dictionary(fields) { $0 + "," + $1 }
            let length = min(named["content-length"].flatMap(Int.init) ?? 0, rest.endIndex - end.upperBound)
            let last = end.upperBound + length
            answers.append(
                Self(
                    status: status, fields: named, body: String(decoding: rest[end.upperBound..<last], as: UTF8.self)))
            rest = Data(rest[last...])
        }
        return answers
    }

    private static let none = Self(status: 0, fields: [:], body: "")

    /// The fault of a refusal against SEC19. A nil value means: the refusal is correct.
    var refusalFlaw: String? {
        guard let members = try? JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any] else {
            return "no JSON object: \(body)"
        }
        let code = ResultCode(refusalStatus: status)
        guard Set(members.keys) == ["success", "msg", "retryable", "attempted", "detail", "requestId"],
            members["success"] as? Bool == false, members["attempted"] as? Bool == false,
            let code, members["msg"] as? String == code.rawValue, members["retryable"] as? Bool == code.isRetryable,
            [.rateLimited, .unavailable].contains(code) == (fields["retry-after"] != nil)
        else { return "not the API's form: \(body)" }
        guard let id = members["requestId"] as? String, id.count == 16, id == fields["x-request-id"] else {
            return "no request id"
        }
        let known: Set = [
            "content-type", "x-request-id", "content-length", "connection", "date", "allow", "retry-after",
            "www-authenticate",
            "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset",
        ]
        guard known.isSuperset(of: fields.keys) else { return "tells more in its head: \(fields)" }
        let tells = ["/work", "/tmp", ".swift", "select ", "insert ", "nio", "hummingbird", "postgres", "rabbit"]
        return tells.first { body.lowercased().contains($0) }.map { "tells \($0): \(body)" }
    }
}
