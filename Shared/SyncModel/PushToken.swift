/// Where a device can be woken while it is not connected: a provider of silent pushes, and what that knows the app by.
package struct PushToken: Hashable, Sendable {
    /// Who carries the push; raw values stand in the database.
    package enum Provider: Int16, Sendable, CaseIterable {
        /// Apple Push Notification service.
        case apns = 1
        /// Firebase Cloud Messaging.
        case fcm = 2
    }

    /// Bytes of a token at the most; providers give some hundred.
    package static let bytesMax = 1_024

    package var provider: Provider
    /// As the provider gave it. Empty: the device cannot be woken any more.
    package var text: String

    package init(provider: Provider, text: String) {
        self.provider = provider
        self.text = text
    }

    /// Whether it can be a token of the provider: APNs' are hexadecimal digits, FCM's are printable ASCII; each stands
    /// in an address or a header that it must not break.
    package var isWellFormed: Bool {
        guard text.utf8.count <= Self.bytesMax else { return false }
        return switch provider {
        case .apns: text.utf8.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
        case .fcm: text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        }
    }
}
