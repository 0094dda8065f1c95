import Foundation
import Logging

/// How edits go to the service.
extension ResourceClient {
    /// Sends all edits of the bound user, in one request where the backend takes that, else one at a time; then tells
    /// the app of each. `run()` does it by itself.
    ///
    /// - Throws: `ResourceError`: `signInNeeded`, `store`, `cancelled`; what was not sent waits.
    @discardableResult
    public func synchronise() async throws(ResourceError) -> SynchronisationSummary {
        try await sendEdits(owner: board.owner)
    }

    func sendEdits(owner: String) async throws(ResourceError) -> SynchronisationSummary {
        var (summary, failure) = (SynchronisationSummary(), nil as ResourceError?)
        await sending.take()
        do throws(LoadFailure) {
            try await sendAll(owner: owner, summary: &summary)
        } catch {
            if case .failed(let error) = error { failure = error }
        }
        sending.give()
        try await tellSynchronized(owner: owner)
        if let failure { throw failure }
        summary.left = try await store.write("counting edits") { transaction in
            try transaction.sendable(after: 0, limit: .max, owner: owner).count
        }
        return summary
    }

    private func sendAll(owner: String, summary: inout SynchronisationSummary) async throws(LoadFailure) {
        var (last, mayBatch): (Int64, Bool) = (0, true)
        while isOnline, board.owner == owner {
            let from = last
            let (path, edits) = try await stored("reading edits") { [named = batchPath] transaction in
                let path = try named ?? transaction.batchPath()
                let limit = path == nil ? 1 : EditBatch.mostEdits
                return (path, try transaction.sendable(after: from, limit: limit, owner: owner))
            }
            guard let first = edits.first else { return }
            let batch = EditBatch(edits)
            if mayBatch, let path, batch.edits.count > 1 {
                mayBatch = try await send(batch, to: path, owner: owner, summary: &summary)
                if mayBatch { last = batch.edits.last?.seq ?? last }
            } else {
                try await send(first, owner: owner, summary: &summary)
                last = first.seq
            }
        }
    }

    /// The configuration's, if it has one.
    private var batchPath: String? { configuration.batchPath.flatMap { try? ResourceURI($0).description } }

    // MARK: One

    private func send(
        _ edit: StoredEdit, owner: String, summary: inout SynchronisationSummary
    ) async throws(LoadFailure) {
        var headers = ResourceHeaders()
        headers.add("Idempotency-Key", edit.id)
        headers.add("Accept", "application/json, */*;q=0.5")
        if let condition = edit.condition { headers.add("If-Match", condition) }
        if edit.kind != .delete { headers.add("Content-Type", edit.contentType) }
        let target = edit.kind == .create ? edit.uri.parentPath : edit.uri.description
        let response = try await exchange(
            ResourceRequest(method: edit.kind.method, uri: target, headers: headers, body: edit.body), for: [edit],
            owner: owner)
        let outcome = EditOutcome(
            status: response.status, etag: response.headers["ETag"], location: response.headers["Location"],
            body: response.body, asOf: asOf(response))
        try await settle(edit, outcome, owner: owner, summary: &summary)
    }

    /// Sends a request with edits, of which the store knows that they may have arrived.
    private func exchange(
        _ request: ResourceRequest, for edits: [StoredEdit], owner: String
    ) async throws(LoadFailure) -> ResourceResponse {
        try await stored("sending edits") { try $0.markSent(edits) }
        do throws(LoadFailure) {
            let response = try await exchange(request, owner: owner)
            if response.status == 401 {
                try await stored("keeping edits") { try $0.markUnsent(edits) }
                throw LoadFailure.failed(
                    ResourceError(.signInNeeded, "the service does not know who edits \(request.uri)", status: 401))
            }
            return response
        } catch {
            if case .unreachable(mayHaveArrived: false) = error {
                try await stored("keeping edits") { try $0.markUnsent(edits) }
            }
            throw error
        }
    }

    // MARK: Many

    /// - Returns: false when the backend does not take it in this way: then one at a time.
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
        let response = try await exchange(
            ResourceRequest(method: "POST", uri: path, headers: headers, body: body), for: batch.edits, owner: owner)
        guard (200...299).contains(response.status),
            let outcomes = EditBatch.outcomes(response.body, asOf: asOf(response))
        else {
            logger.warning("the service does not take edits together", metadata: ["status": "\(response.status)"])
            if [404, 405, 410, 501].contains(response.status) {
                try await stored("forgetting the way of batches") { try $0.setBatchPath(nil) }
            }
            return false
        }
        for sent in batch.edits {
            // The answer to one before it may have moved it.
            let present = try await stored("reading an edit") { try $0.edit(sent.seq) }
            let edit = present ?? sent
            if let outcome = outcomes[edit.id] {
                try await settle(edit, outcome, owner: owner, summary: &summary)
            } else {
                try await send(edit, owner: owner, summary: &summary)
            }
        }
        return true
    }

    // MARK: Answers

    private func settle(
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
            let again = try await stored("repeating an edit") { try $0.makeUnconditional(edit, id: id) }
            if let again { try await send(again, owner: owner, summary: &summary) }
        case .refused:
            let message = String(decoding: (outcome.body ?? []).prefix(300), as: UTF8.self)
            try await stored("noting a refusal") { transaction in
                try transaction.stop(edit, as: .refused, status: outcome.status, message: message, owner: owner)
            }
            summary.refused += 1
        case .signInNeeded:
            throw .failed(
                ResourceError(.signInNeeded, "the service does not know who edits \(edit.uri)", status: outcome.status))
        case .later: throw .unreachable(mayHaveArrived: true)
        }
    }

    private func apply(
        _ edit: StoredEdit, _ answer: EditAnswer, place: ResourceURI?, owner: String
    ) async throws(LoadFailure) {
        let now = configuration.clock()
        try await stored("noting an answer") { transaction in
            try transaction.applied(edit, answer: answer, place: place, owner: owner, now: now)
        }
    }

    /// Where the service has put what it has created; nil: it does not say, or what it names is something else.
    ///
    /// A `PUT` has created something when it is answered with 201 (RFC 9110 §9.3.4). With `If-Match` there was something
    /// before, which stays where it is; a place above or below is that of its collection, or of a part.
    private func place(of edit: StoredEdit, _ outcome: EditOutcome) -> ResourceURI? {
        // A place of the library's own is none of the service's, and could lead in a circle.
        guard let place = outcome.location.flatMap(reference), !place.isLocal else { return nil }
        switch edit.kind {
        case .create: return place
        case .update:
            let isBeside = place.query == nil && !place.isBelow(edit.uri) && !edit.uri.isBelow(place)
            return outcome.status == 201 && edit.condition == nil && isBeside ? place : nil
        case .patch, .delete: return nil
        }
    }

    /// The service has another version: it is fetched before anything is decided.
    private func decide(
        _ edit: StoredEdit, isDropped: Bool, _ outcome: EditOutcome, owner: String,
        summary: inout SynchronisationSummary
    ) async throws(LoadFailure) {
        let saved = try await stored("reading a copy") { try $0.resource(edit.uri, owner: owner) }
        _ = try await load(
            edit.uri, kind: saved?.kind ?? .item, saved: saved?.policy, isForConflict: true, owner: owner)
        let theirs = try await stored("reading a copy") { try $0.resource(edit.uri, owner: owner) }
        if let theirs, let body = theirs.body, edit.hasEffect(on: body) == false {
            // It has what the edit wanted: the edit had arrived, and its answer was lost.
            let answer = EditAnswer(etag: theirs.etag, body: body, asOf: theirs.asOf)
            try await apply(edit, answer, place: nil, owner: owner)
            summary.applied += 1
        } else if isDropped {
            try await stored("dropping an edit") { try $0.drop(edit, owner: owner) }
            summary.dropped += 1
        } else {
            try await stored("noting a conflict") { transaction in
                try transaction.stop(edit, as: .conflict, status: outcome.status, message: nil, owner: owner)
            }
            summary.conflicts += 1
        }
    }

    // MARK: Telling

    private func tellSynchronized(owner: String) async throws(ResourceError) {
        let notices = try await store.write("reading notices") { try $0.notices(owner: owner) }
        for notice in notices {
            if let callbacks = configuration.callbacks {
                let resource = try await current(notice.uri, owner: owner)
                guard board.owner == owner else { return }
                await callbacks.offlineResourceSynchronized(uri: notice.uri.description, resource: resource)
            }
            try await store.write("forgetting a notice") { try $0.forgetNotice(notice.seq) }
        }
    }
}
