/// Who is told of changes, one call at a time per cause; each is awaited, so that none is lost.
public protocol ResourceCallbacks: Sendable {
    /// The service has answered an edit that was made offline: once per edit, after all of them were sent; edits that
    /// became one count once. It comes again when the app ends while it is at work here.
    ///
    /// - Parameter resource: as it is now; nil: deleted. Its flags say whether there is a conflict or an error.
    func offlineResourceSynchronized(uri: String, resource: Resource?) async

    /// The service has another version of what was cached, by a fetch, a refresh or a push; not for what is newly
    /// added.
    ///
    /// - Parameter resource: as it is now; nil: deleted.
    func cachedResourceChanged(uri: String, resource: Resource?) async
}

extension ResourceCallbacks {
    public func offlineResourceSynchronized(uri: String, resource: Resource?) async {}
    public func cachedResourceChanged(uri: String, resource: Resource?) async {}
}
