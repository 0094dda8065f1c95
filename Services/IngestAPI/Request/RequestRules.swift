import NIOHTTP1
import SyncModel

/// The rules for the head of a request (H1); pure.
enum RequestRules {
    /// The longest path with query, in bytes (SEC8).
    static let uriBytes = 8_192

    /// The call of a head.
    ///
    /// - Throws: the refusal of an unknown path, a wrong method or an invalid content header.
    static func call(of head: HTTPRequestHead) throws(EarlyRefusal) -> APICall {
        let target = head.target
        guard target.utf8.count <= uriBytes else {
            throw refused(.uriTooLong, "The URI has more than \(uriBytes) bytes; send parameters in the body.")
        }
        guard let call = APICall(path: Substring(target.utf8.prefix { $0 != UInt8(ascii: "?") })) else {
            throw refused(.notFound, "There is no such path; /openapi.json lists the paths.")
        }
        guard head.method == call.method else {
            let method = call.method.rawValue
            let detail = "This path accepts \(method) only; call it with \(method)."
            throw EarlyRefusal(answer: .refusal(.methodNotAllowed, detail, allow: method))
        }
        if call.bodyBytes > 0 { try checkContent(head, of: call) }
        return call
    }

    private static func refused(_ code: ResultCode, _ detail: String) -> EarlyRefusal {
        EarlyRefusal(answer: .refusal(code, detail))
    }

    private static func checkContent(_ head: HTTPRequestHead, of call: APICall) throws(EarlyRefusal) {
        guard let type = head.value(of: "Content-Type"), isJSON(type) else {
            throw refused(.unsupportedMediaType, "Content-Type is not JSON; send application/json in UTF-8.")
        }
        // The vendor guide's samples send UTF-8 here, which is not a compression.
        guard ["identity", "utf-8"].contains((head.value(of: "Content-Encoding") ?? "identity").lowercased()) else {
            throw refused(.unsupportedMediaType, "Content-Encoding is not accepted; send the body uncompressed.")
        }
        if let length = head.value(of: "Content-Length") {
            guard let bytes = Int(length), bytes <= call.bodyBytes else {
                throw EarlyRefusal(answer: bodyTooLong(of: call))
            }
        } else if !head.headers.contains(name: "Transfer-Encoding") {
            throw refused(.lengthRequired, "Content-Length is missing; send it.")
        }
    }

    /// The refusal of a body that is too long, by its Content-Length or as it arrives.
    static func bodyTooLong(of call: APICall) -> HTTPAnswer {
        .refusal(.tooLarge, "The body has more than \(call.bodyBytes) bytes; send less.")
    }

    /// Whether the type is `application/json`, alone or with the charset utf-8, in upper or lower case.
    private static func isJSON(_ type: String) -> Bool {
        if type == "application/json" { return true }
        let parts = type.lowercased().split(separator: ";", omittingEmptySubsequences: false).map { part in
            part.filter { $0 != " " && $0 != "\t" && $0 != "\"" }
        }
        return parts[0] == "application/json" && parts.dropFirst().allSatisfy { $0 == "charset=utf-8" }
    }
}
