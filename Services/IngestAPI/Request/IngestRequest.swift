import NIOHTTP1
import Synchronization

/// A request with a valid head, and the received part of its body.
struct IngestRequest: Sendable {
    /// The request's name in responses and logs.
    let name: String
    /// The time at which the head was complete.
    let start: ContinuousClock.Instant
    let head: HTTPRequestHead
    let call: APICall
    let query: RequestQuery
    /// A nil value means: the request is unsigned, which its instance allows.
    let signature: SignatureHeaders?
    /// Reserved in `BodyBudget` until the request is answered.
    var body: [UInt8] = []
}

/// Names for requests, shown in responses and logs.
enum RequestName {
    /// The random start makes names differ between processes and restarts.
    private static let last = Atomic<UInt64>(.random(in: .min ... .max))

    /// A new name: 16 hexadecimal digits. Names are unique, and not secret.
    static func make() -> String {
        // SplitMix64: a name repeats after 2^64 names.
        var number = last.wrappingAdd(0x9E37_79B9_7F4A_7C15, ordering: .relaxed).newValue
        number = (number ^ number >> 30) &* 0xBF58_476D_1CE4_E5B9
        number = (number ^ number >> 27) &* 0x94D0_49BB_1331_11EB
        number ^= number >> 31
        return String(unsafeUninitializedCapacity: 16) { digits in
            for index in 0..<16 {
                let digit = UInt8(truncatingIfNeeded: number >> UInt64(60 - 4 * index)) & 0xF
                digits[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
            }
            return 16
        }
    }
}

extension HTTPRequestHead {
    /// Path and query, as routed and as signed. Scheme and host of an absolute target (RFC 9112 §3.2.2) are removed;
    /// `RequestHeadCheck` has compared them with the Host field.
    var target: String {
        guard !uri.utf8.starts(with: "/".utf8), let scheme = uri.firstRange(of: "://") else { return uri }
        let rest = uri[scheme.upperBound...].drop { $0 != "/" && $0 != "?" }
        return rest.first == "/" ? String(rest) : "/" + rest
    }

    /// The value of a field, with its lines joined (RFC 9110 §5.3); nil when the field is absent.
    func value(of name: String) -> String? {
        let lines = headers[name]
        return lines.count > 1 ? lines.joined(separator: ", ") : lines.first
    }
}
