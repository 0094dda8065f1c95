public import Foundation

/// Where the service can wake this device while it is not connected: what the provider of silent pushes gave the app.
public enum SyncPushToken: Hashable, Sendable {
    /// Of Apple's push service: the bytes that `didRegisterForRemoteNotificationsWithDeviceToken` brings.
    case apns(Data)
    /// Of Firebase Cloud Messaging: the registration token.
    case fcm(String)
}
