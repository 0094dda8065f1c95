/// Receives notifications about resources. The library awaits each call before it makes the next one of the same cause.
/// Every method has a default that does nothing (RES9).
public protocol ResourceCallbacks: Sendable {
    /// The backend has answered an offline edit. Called once per edit after all edits of the run were sent; merged
    /// edits count as one. The call is repeated when the app ends before it returns.
    ///
    /// - Parameters:
    ///   - uri: the URI of the resource, relative to the base URL.
    ///   - resource: the local version; nil when it is deleted. Its flags show conflicts and errors.
    func offlineResourceSynchronized(uri: String, resource: Resource?) async

    /// A fetch, a refresh, a push or an applied edit of the app has changed or deleted a cached resource. Not called for
    /// a resource that is newly cached. After a conflict, called when the edit is marked: `hasConflict` is true.
    ///
    /// - Parameters:
    ///   - uri: the URI of the resource, relative to the base URL.
    ///   - resource: the new version; nil when it is deleted.
    func cachedResourceChanged(uri: String, resource: Resource?) async
}

extension ResourceCallbacks {
    public func offlineResourceSynchronized(uri: String, resource: Resource?) async {}
    public func cachedResourceChanged(uri: String, resource: Resource?) async {}
}
