/// The address for wake-ups of a device that is not connected: a provider of silent pushes and its token for the app.
package struct PushToken: Hashable, Sendable {
    /// The provider of the silent push. The raw values are stored in the database.
    package enum Provider: Int16, Sendable, CaseIterable {
        /// Apple Push Notification service.
        case apns = 1
        /// Firebase Cloud Messaging.
        case fcm = 2
    }

    /// Maximum bytes of a token; providers use a few hundred.
    package static let bytesMax = 1_024

    package var provider: Provider
    /// The provider's token. Empty: the device must not be woken any more.
    package var text: String

    package init(provider: Provider, text: String) {
        self.provider = provider
        self.text = text
    }

    /// Whether the token has the provider's form: hexadecimal digits for APNs, printable ASCII for FCM. It becomes part
    /// of a URL or a header, which it must not break.
    package var isWellFormed: Bool {
        guard text.utf8.count <= Self.bytesMax else { return false }
        return switch provider {
        case .apns: text.utf8.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
        case .fcm: text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        }
    }
}
