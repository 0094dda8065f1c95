#if canImport(Network)
    import Network

    /// The networks of the device, as Apple's systems report them. Not compiled here: Linux has no Network framework.
    enum NetworkMonitor {
        /// The present network, and each later one, until the reader ends.
        static func paths() -> AsyncStream<NetworkPath> {
            let (paths, continuation) = AsyncStream.makeStream(
                of: NetworkPath.self, bufferingPolicy: .bufferingNewest(1))
            let monitor = NWPathMonitor()
            monitor.pathUpdateHandler = { path in
                continuation.yield(
                    NetworkPath(
                        isAvailable: path.status == .satisfied, name: path.availableInterfaces.first?.name ?? ""))
            }
            continuation.onTermination = { _ in monitor.cancel() }
            monitor.start(queue: .global())
            return paths
        }
    }
#endif
