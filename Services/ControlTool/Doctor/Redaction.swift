import Foundation
import ServiceKit

/// Takes away what nobody who helps has to see. No log or figure of ours has secrets to begin with (reliability SEC16):
/// this is the second belt.
struct Redaction {
    private let secrets: [String]

    /// - Parameter secrets: what is taken away wherever it stands; short ones would take away more than themselves.
    init(secrets: [String]) { self.secrets = secrets.filter { $0.count >= 8 } }

    /// The passwords that the tool itself has.
    static func ofSettings() throws -> Redaction {
        let amqp = try ToolSettings.read(ProcessSettings.amqpKeys)[ProcessSettings.amqpPassword]
        guard try ToolSettings.nameDatabase() else { return Redaction(secrets: [amqp]) }
        return Redaction(secrets: [amqp, try ToolSettings.read(PostgresSettings.keys)[PostgresSettings.password]])
    }

    /// The same without secrets.
    func of(_ data: Data) -> Data {
        var text = String(decoding: data, as: UTF8.self)
        for secret in secrets { text = text.replacing(secret, with: "(secret)") }
        return Data(text.utf8)
    }

    /// Scheme, host and port of a URL, which says where it leads and not what it tells there.
    static func place(of url: String) -> String {
        guard var components = URLComponents(string: url), components.host != nil else {
            return url.isEmpty ? "" : "(set)"
        }
        (components.path, components.query, components.fragment) = ("", nil, nil)
        (components.user, components.password) = (nil, nil)
        return components.string ?? "(set)"
    }
}
