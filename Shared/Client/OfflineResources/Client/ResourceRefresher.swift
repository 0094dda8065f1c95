import Foundation
import Logging

/// Refreshes copies from the backend.
struct ResourceRefresher: Sendable {
    /// The number of concurrent refresh requests.
    private static let width = 4

    let loader: ResourceLoader
    let cache: ResourceCache
    let sharedState: ResourceSharedState
    let logger: Logger

    /// Requests a refresh of all expired copies.
    func requestRefreshOfExpired() async throws(ResourceError) {
        let (owner, now) = (sharedState.owner, cache.clock())
        try await cache.store.write("requesting refreshes") { try $0.refreshes.requestExpired(owner: owner, now: now) }
    }

    /// Refreshes the requested copies from the backend, in the order of their priority. Copies with the priority `Low`
    /// are refreshed only when no edits wait.
    ///
    /// - Throws: `ResourceError.store`. A resource that cannot be fetched is logged.
    func refresh() async throws(ResourceError) {
        let owner = sharedState.owner
        for fetch in sharedState.removeScheduledFetches() where fetch.owner == owner && sharedState.isOnline {
            do throws(LoadFailure) {
                _ = try await loader.load(
                    fetch.uri, kind: fetch.kind, request: fetch.request, headers: fetch.headers, owner: owner)
            } catch {
                logger.debug("a resource was not fetched", metadata: ["uri": "\(fetch.uri)", "error": "\(error)"])
            }
        }
        let requests = try await cache.store.read("reading refresh requests") { transaction in
            let waits = try transaction.edits.hasWaitingEdits(owner: owner)
            return try transaction.refreshes.requests(owner: owner, includesLow: !waits)
        }
        await withTaskGroup(of: Void.self) { group in
            for (index, request) in requests.enumerated() {
                if index >= Self.width { await group.next() }
                guard sharedState.isOnline, !Task.isCancelled, sharedState.owner == owner else { break }
                group.addTask { await self.refresh(request, owner: owner) }
            }
        }
    }

    private func refresh(_ request: RefreshQueue.Request, owner: String) async {
        do throws(LoadFailure) {
            let row = try await cache.read("reading a copy") { try $0.resources.row(request.uri, owner: owner) }
            guard let row else { return }
            _ = try await loader.load(request.uri, kind: request.kind, saved: row.policy, owner: owner)
            // Ends the request also when the response was overtaken or not stored, so that the client does not repeat
            // it forever.
            try await cache.stored("ending a refresh request") {
                try $0.refreshes.endRequest(for: request.uri, owner: owner)
            }
        } catch {
            guard case .failed(let error) = error, error.code != .cancelled, error.code != .signInNeeded else { return }
            logger.warning("a copy could not be refreshed", metadata: ["uri": "\(request.uri)", "error": "\(error)"])
            _ = try? await cache.store.write("ending a refresh request") {
                try $0.refreshes.endRequest(for: request.uri, owner: owner)
            }
        }
    }
}
