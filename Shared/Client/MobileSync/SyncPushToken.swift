public import Foundation

/// The address for wake-up pushes to this device: the token that the push provider gave to the app.
public enum SyncPushToken: Hashable, Sendable {
    /// Apple Push Notification service: the bytes from `didRegisterForRemoteNotificationsWithDeviceToken`.
    case apns(Data)
    /// Firebase Cloud Messaging: the registration token.
    case fcm(String)
}
