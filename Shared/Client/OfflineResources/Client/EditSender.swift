import Foundation
import Logging
import MobileSync

/// Sends edits to the backend.
struct EditSender: Sendable {
    let configuration: ResourceConfiguration
    let exchange: BackendExchange
    let loader: ResourceLoader
    let cache: ResourceCache
    let notifier: CallbackNotifier
    let sharedState: ResourceSharedState
    let logger: Logger
    /// Only one task sends edits at a time, so that they stay in order.
    private let lock = AsyncLock()

    init(
        configuration: ResourceConfiguration, exchange: BackendExchange, loader: ResourceLoader,
        notifier: CallbackNotifier, logger: Logger
    ) {
        self.configuration = configuration
        self.exchange = exchange
        self.loader = loader
        self.notifier = notifier
        self.logger = logger
        cache = exchange.cache
        sharedState = exchange.sharedState
    }

    /// Sends all edits of a user, then notifies the app of each answered edit.
    ///
    /// - Throws: as `ResourceClient.synchronise`.
    func sendAll(owner: String) async throws(ResourceError) -> SynchronisationSummary {
        var (summary, failure) = (SynchronisationSummary(), nil as ResourceError?)
        do throws(LoadFailure) {
            try await lock.withLock { () throws(LoadFailure) in
                try await sendQueued(owner: owner, summary: &summary)
            }
        } catch {
            if case .failed(let error) = error { failure = error }
        }
        try await notifier.notifySynchronized(owner: owner)
        if let failure { throw failure }
        summary.left = try await cache.store.read("counting edits") { transaction in
            try transaction.edits.sendable(limit: .max, owner: owner).count
        }
        return summary
    }

    /// Whether there are edits that can be sent now.
    func hasWaitingEdits(owner: String) async throws(ResourceError) -> Bool {
        try await cache.store.read("reading edits") { try $0.edits.hasWaitingEdits(owner: owner) }
    }

    private func sendQueued(owner: String, summary: inout SynchronisationSummary) async throws(LoadFailure) {
        var (tried, mayBatch): (Set<String>, Bool) = ([], true)
        while sharedState.isOnline, sharedState.owner == owner {
            let (path, edits) = try await cache.read("reading edits") { [tried, named = batchPath] transaction in
                let path = try named ?? transaction.batchPath()
                let limit = path == nil ? 1 : EditBatch.mostEdits
                return (path, try transaction.edits.sendable(except: tried, limit: limit, owner: owner))
            }
            guard let first = edits.first else { return }
            let batch = EditBatch(edits)
            if mayBatch, let path, batch.edits.count > 1 {
                mayBatch = try await send(batch, to: path, owner: owner, summary: &summary)
                if mayBatch { tried.formUnion(batch.edits.map(\.id)) }
            } else {
                try await send(first, owner: owner, summary: &summary)
                tried.insert(first.id)
            }
        }
    }

    /// The batch path of the configuration; nil when it has none.
    private var batchPath: String? { configuration.batchPath.flatMap { try? ResourceURI($0).description } }

    // MARK: Single edits

    private func send(
        _ edit: StoredEdit, owner: String, summary: inout SynchronisationSummary
    ) async throws(LoadFailure) {
        var headers = ResourceHeaders()
        headers.add("Idempotency-Key", edit.id)
        headers.add("Accept", "application/json, */*;q=0.5")
        headers.merge(edit.headers)
        if let condition = edit.condition { headers.add("If-Match", condition) }
        if edit.kind != .delete { headers.add("Content-Type", edit.contentType) }
        let target = edit.kind == .create ? edit.uri.parentPath : edit.uri.description
        let response = try await send(
            ResourceRequest(method: edit.kind.method, uri: target, headers: headers, body: edit.body), for: [edit],
            owner: owner)
        let outcome = EditOutcome(
            status: response.status, etag: response.headers["ETag"], location: response.headers["Location"],
            body: response.body, asOf: exchange.asOf(response))
        try await process(edit, outcome, owner: owner, summary: &summary)
    }

    /// Sends a request with edits. The store first marks them as sent, because they can arrive even when no response
    /// does.
    private func send(
        _ request: ResourceRequest, for edits: [StoredEdit], owner: String
    ) async throws(LoadFailure) -> ResourceResponse {
        try await cache.stored("marking edits as sent") { try $0.edits.markSent(edits) }
        do throws(LoadFailure) {
            let response = try await exchange.send(request, owner: owner)
            if response.status == 401 {
                try await cache.stored("marking edits as unsent") { try $0.edits.markUnsent(edits) }
                throw LoadFailure.failed(
                    ResourceError(
                        .signInNeeded, "the backend did not accept the credentials for \(request.uri); sign in",
                        status: 401))
            }
            return response
        } catch {
            if case .unreachable(mayHaveArrived: false) = error {
                try await cache.stored("marking edits as unsent") { try $0.edits.markUnsent(edits) }
            }
            throw error
        }
    }

    // MARK: Batches

    /// Sends several edits in one request.
    ///
    /// - Returns: false when the backend does not accept the batch; the edits are then sent one at a time.
    private func send(
        _ batch: EditBatch, to path: String, owner: String, summary: inout SynchronisationSummary
    ) async throws(LoadFailure) -> Bool {
        var headers = ResourceHeaders()
        headers.add("Content-Type", "application/json")
        headers.add("Accept", "application/json")
        let body: [UInt8]
        do throws(ResourceError) {
            body = try batch.json()
        } catch {
            throw .failed(error)
        }
        let response = try await send(
            ResourceRequest(method: "POST", uri: path, headers: headers, body: body), for: batch.edits, owner: owner)
        guard (200...299).contains(response.status),
            let outcomes = EditBatch.outcomes(response.body, asOf: exchange.asOf(response))
        else {
            logger.warning(
                "the backend does not accept a batch of edits; they are sent one at a time",
                metadata: ["status": "\(response.status)"])
            if [404, 405, 410, 501].contains(response.status) {
                try await cache.stored("removing the batch path") { try $0.setBatchPath(nil) }
            }
            return false
        }
        for sent in batch.edits {
            // The response to an earlier edit may have moved this one.
            let present = try await cache.read("reading an edit") { try $0.edits.edit(sent.seq) }
            let edit = present ?? sent
            if let outcome = outcomes[edit.id] {
                try await process(edit, outcome, owner: owner, summary: &summary)
            } else {
                try await send(edit, owner: owner, summary: &summary)
            }
        }
        return true
    }

    // MARK: Responses

    private func process(
        _ edit: StoredEdit, _ outcome: EditOutcome, owner: String, summary: inout SynchronisationSummary
    ) async throws(LoadFailure) {
        let verdict = EditVerdict(
            status: outcome.status, kind: edit.kind, policy: edit.conflictPolicy,
            isUnconditional: edit.isUnconditional)
        switch verdict {
        case .applied:
            let answer = EditAnswer(etag: outcome.etag, body: outcome.body, asOf: outcome.asOf)
            try await apply(edit, answer, place: place(of: edit, outcome), owner: owner)
            summary.applied += 1
        case .conflict, .dropped:
            try await decide(edit, isDropped: verdict == .dropped, outcome, owner: owner, summary: &summary)
        case .sendUnconditionally:
            let id = configuration.makeID()
            let again = try await cache.stored("repeating an edit") { try $0.edits.makeUnconditional(edit, id: id) }
            if let again { try await send(again, owner: owner, summary: &summary) }
        case .refused:
            let message = String(decoding: (outcome.body ?? []).prefix(300), as: UTF8.self)
            try await cache.stored("storing a refusal") { transaction in
                try transaction.responses.stop(
                    edit, as: .refused, status: outcome.status, message: message, owner: owner)
            }
            summary.refused += 1
        case .signInNeeded:
            throw .failed(
                ResourceError(
                    .signInNeeded, "the backend did not accept the credentials for \(edit.uri); sign in",
                    status: outcome.status))
        case .later: throw .unreachable(mayHaveArrived: true)
        }
    }

    private func apply(
        _ edit: StoredEdit, _ answer: EditAnswer, place: ResourceURI?, owner: String
    ) async throws(LoadFailure) {
        let now = cache.clock()
        let changed = try await cache.stored("storing a response") { transaction in
            try transaction.responses.apply(edit, answer: answer, place: place, owner: owner, now: now)
        }
        if let changed { await notifier.notifyChanged([changed], owner: owner) }
    }

    /// The URI at which the backend has created the resource; nil when the response names none or one that does not
    /// count.
    ///
    /// A `PUT` has created a resource when the status is 201 (RFC 9110 §9.3.4). With `If-Match` the resource existed
    /// before, so it stays where it is. A URI above or below the edit's own names its collection or a part of it.
    private func place(of edit: StoredEdit, _ outcome: EditOutcome) -> ResourceURI? {
        // The backend cannot assign a temporary URI of the library, and such a URI could form a loop.
        guard let place = outcome.location.flatMap(exchange.reference), !place.isLocal else { return nil }
        switch edit.kind {
        case .create: return place
        case .update:
            let isBeside = place.query == nil && !place.isBelow(edit.uri) && !edit.uri.isBelow(place)
            return outcome.status == 201 && edit.condition == nil && isBeside ? place : nil
        case .patch, .delete: return nil
        }
    }

    /// Handles a conflict. It first fetches the backend's version, and notifies the app of it after the edit is marked.
    private func decide(
        _ edit: StoredEdit, isDropped: Bool, _ outcome: EditOutcome, owner: String,
        summary: inout SynchronisationSummary
    ) async throws(LoadFailure) {
        let saved = try await cache.read("reading a copy") { try $0.resources.row(edit.uri, owner: owner) }
        _ = try await loader.load(
            edit.uri, kind: saved?.kind ?? .item, saved: saved?.policy, isForConflict: true, owner: owner)
        let theirs = try await cache.read("reading a copy") { try $0.resources.row(edit.uri, owner: owner) }
        if let theirs, let body = theirs.body, edit.hasEffect(on: body) == false {
            // The backend's version already contains the edit: the edit had arrived, and its response was lost.
            let answer = EditAnswer(etag: theirs.etag, body: body, asOf: theirs.asOf)
            try await apply(edit, answer, place: nil, owner: owner)
            summary.applied += 1
            return
        }
        if isDropped {
            try await cache.stored("dropping an edit") { try $0.responses.drop(edit, owner: owner) }
            summary.dropped += 1
        } else {
            try await cache.stored("storing a conflict") { transaction in
                try transaction.responses.stop(edit, as: .conflict, status: outcome.status, message: nil, owner: owner)
            }
            summary.conflicts += 1
        }
        if let saved, saved.body != theirs?.body || saved.etag != theirs?.etag {
            await notifier.notifyChanged([edit.uri], owner: owner)
        }
    }
}
