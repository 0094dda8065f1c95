// A stand-in for MobileSync: the types that the compatibility API names.
public struct MetaConfig: Sendable {}
public struct SyncTrust: Sendable {}
public enum SyncStatus: Sendable { case notAvailable, connecting, connected, connectFailed }
public struct SyncError: Error {}
