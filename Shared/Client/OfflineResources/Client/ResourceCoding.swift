public import Foundation

/// The conversion between bodies in JSON and values of the app's types.
public struct ResourceCoding: Sendable {
    /// Makes the encoder of a body.
    public var makeEncoder: @Sendable () -> JSONEncoder
    /// Makes the decoder of a body.
    public var makeDecoder: @Sendable () -> JSONDecoder

    /// Dates as texts of ISO 8601 with whole seconds, all else as Foundation's coders do by default.
    public static let standard = ResourceCoding(
        makeEncoder: {
            let encoder = JSONEncoder()
            encoder.dateEncodingStrategy = .iso8601
            return encoder
        },
        makeDecoder: {
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            return decoder
        })

    /// Makes a conversion with coders of the app's own.
    public init(
        makeEncoder: @escaping @Sendable () -> JSONEncoder, makeDecoder: @escaping @Sendable () -> JSONDecoder
    ) {
        self.makeEncoder = makeEncoder
        self.makeDecoder = makeDecoder
    }

    /// Encodes a value as a body.
    ///
    /// - Throws: `ResourceError.invalidArgument` when the value cannot be JSON, such as an infinite number.
    public func body<Value: Encodable>(of value: Value) throws(ResourceError) -> [UInt8] {
        do {
            return [UInt8](try makeEncoder().encode(value))
        } catch {
            let place = (error as? EncodingError).map(Self.place) ?? ""
            throw ResourceError(
                .invalidArgument, "a \(Value.self) cannot be encoded as JSON\(place); JSON has no such value")
        }
    }

    /// Decodes the body of a resource.
    ///
    /// - Throws: `ResourceError.decoding`; the message has the URI and the member.
    public func value<Value: Decodable>(_ type: Value.Type, of resource: Resource) throws(ResourceError) -> Value {
        do {
            return try makeDecoder().decode(type, from: Data(resource.body))
        } catch {
            let reason = (error as? DecodingError).map(Self.reason) ?? "it cannot be decoded"
            throw ResourceError(
                .decoding,
                "the body of \(resource.uri) is not a \(type): \(reason); correct the type, or use fetchObject")
        }
    }

    // The texts have no value of the body.

    private static func reason(_ error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, let context): "the member \(path(context.codingPath + [key])) is missing"
        case .valueNotFound(_, let context): "\(member(context.codingPath)) is null"
        case .typeMismatch(let type, let context): "\(member(context.codingPath)) is not a \(type)"
        case .dataCorrupted(let context):
            context.codingPath.isEmpty ? "it is not valid JSON" : "\(member(context.codingPath)) has no valid value"
        @unknown default: "it cannot be decoded"
        }
    }

    private static func place(_ error: EncodingError) -> String {
        guard case .invalidValue(_, let context) = error, !context.codingPath.isEmpty else { return "" }
        return " at \(path(context.codingPath))"
    }

    private static func member(_ keys: [any CodingKey]) -> String {
        keys.isEmpty ? "it" : "the member \(path(keys))"
    }

    private static func path(_ keys: [any CodingKey]) -> String {
        keys.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }.joined().trimmingPrefix(".")
            .description
    }
}
