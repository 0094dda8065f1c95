import Foundation

/// Checks whether a REST backend behaves as the module OfflineResources needs it (RES4, RES7): entity tags, conditions
/// and places.
struct ResourceCheck: Sendable {
    struct Request: Sendable {
        let method: String
        let url: String
        var headers: [String: String] = [:]
        var body: [UInt8] = []
    }

    struct Response: Sendable {
        let status: Int
        /// By name in lower case.
        let headers: [String: String]
        let body: [UInt8]

        var etag: String? { headers["etag"] }
        var isSuccess: Bool { (200...299).contains(status) }
    }

    /// Sends a request to the backend.
    let send: @Sendable (Request) async throws -> Response
    /// Makes a random id.
    var makeID: @Sendable () -> String = { UUID().uuidString.lowercased() }

    // MARK: Reading

    /// Checks a resource without changing anything.
    ///
    /// - Returns: the results; the first one says whether there is a resource at all.
    func read(_ url: String) async throws -> [ResourceCheckResult] {
        let response = try await send(Request(method: "GET", url: url))
        guard response.status == 200, (try? JSONSerialization.jsonObject(with: Data(response.body))) != nil else {
            return [
                ResourceCheckResult(
                    rule: "GET answers 200 with JSON",
                    problem: "status \(response.status); check the URL and the credentials (--header)")
            ]
        }
        var results = [ResourceCheckResult(rule: "GET answers 200 with JSON", problem: nil)]
        results.append(
            ResourceCheckResult(
                rule: "GET has an ETag",
                problem: Self.isTag(response.etag)
                    ? nil
                    : "send a quoted, strong entity tag without spaces that changes with the resource; without it, "
                        + "edits overwrite changes of others, and an unchanged resource costs its whole body"))
        if let tag = response.etag, Self.isTag(tag) {
            let again = try await send(Request(method: "GET", url: url, headers: ["If-None-Match": tag]))
            results.append(
                ResourceCheckResult(
                    rule: "GET with this ETag as If-None-Match answers 304",
                    problem: again.status == 304 ? nil : "status \(again.status); answer 304 without a body"))
        }
        return results
    }

    // MARK: Editing

    /// Checks the conditions of edits. It replaces the resource by its own present version, so nothing changes, unless
    /// another client edits it meanwhile.
    func edit(_ url: String) async throws -> [ResourceCheckResult] {
        let present = try await send(Request(method: "GET", url: url))
        guard present.status == 200, let tag = present.etag else {
            return [ResourceCheckResult(rule: "PUT checks If-Match", problem: "there is no ETag to check it with")]
        }
        func put(_ condition: String) async throws -> Response {
            try await send(
                Request(
                    method: "PUT", url: url, headers: ["If-Match": condition, "Content-Type": "application/json"],
                    body: present.body))
        }
        let refused = try await put("\"mss-check-\(makeID())\"")
        var results = [
            ResourceCheckResult(
                rule: "PUT with another ETag as If-Match answers 412",
                problem: refused.status == 412
                    ? nil : "status \(refused.status); a conflict of two devices would not be found")
        ]
        let current = refused.isSuccess ? refused.etag ?? tag : tag
        let applied = try await put(current)
        results.append(
            ResourceCheckResult(
                rule: "PUT with the present ETag as If-Match answers 2xx",
                problem: applied.isSuccess ? nil : "status \(applied.status); no edit could be sent"))
        if applied.isSuccess {
            results.append(
                ResourceCheckResult(
                    rule: "PUT answers with the new ETag",
                    problem: Self.isTag(applied.etag)
                        ? nil : "send it; without it, each edit is followed by a fetch of the resource"))
        }
        return results
    }

    // MARK: Creating

    /// Checks the creation of an item in a collection. The item is deleted again.
    func create(in url: String, _ item: [UInt8]) async throws -> [ResourceCheckResult] {
        let key = makeID()
        func post() async throws -> Response {
            try await send(
                Request(
                    method: "POST", url: url, headers: ["Idempotency-Key": key, "Content-Type": "application/json"],
                    body: item))
        }
        let created = try await post()
        guard created.isSuccess else {
            return [
                ResourceCheckResult(
                    rule: "POST creates an item", problem: "status \(created.status); check the item and the rights")
            ]
        }
        var results = [
            ResourceCheckResult(rule: "POST creates an item", problem: nil),
            ResourceCheckResult(
                rule: "POST answers with an ETag",
                problem: Self.isTag(created.etag)
                    ? nil : "send it; without it, the new item is fetched before it can be edited safely"),
        ]
        guard let place = created.headers["location"].flatMap({ Self.place($0, of: url) }) else {
            return results + [
                ResourceCheckResult(
                    rule: "POST answers with a Location on the same host",
                    problem: "send the path of the new item; without it, the device cannot edit what it created. The "
                        + "item of this check was not deleted")
            ]
        }
        results.append(ResourceCheckResult(rule: "POST answers with a Location on the same host", problem: nil))
        let repeated = try await post()
        let other = repeated.headers["location"].flatMap { Self.place($0, of: url) }
        results.append(
            ResourceCheckResult(
                rule: "POST with the same Idempotency-Key creates nothing more",
                problem: other == place
                    ? nil
                    : "return the first response again; an edit whose response was lost would be applied twice"))
        let found = try await send(Request(method: "GET", url: place))
        results.append(
            ResourceCheckResult(
                rule: "GET of this Location answers 200 with the same ETag",
                problem: found.status == 200 && found.etag == created.etag
                    ? nil : "status \(found.status), ETag \(found.etag ?? "none")"))
        for place in Set([place, other].compactMap(\.self)) {
            let deleted = try await send(Request(method: "DELETE", url: place, headers: ["If-Match": "*"]))
            results.append(
                ResourceCheckResult(
                    rule: "DELETE with If-Match: * answers 2xx",
                    problem: deleted.isSuccess ? nil : "status \(deleted.status); delete \(place) yourself"))
        }
        return results
    }

    /// A strong entity tag (RFC 9110 §8.8.3) that the library accepts. `If-Match` never matches a weak one.
    private static func isTag(_ text: String?) -> Bool {
        guard let bytes = text?.utf8, (2...1_000).contains(bytes.count), bytes.first == 34, bytes.last == 34 else {
            return false
        }
        return bytes.dropFirst().dropLast().allSatisfy { $0 > 32 && $0 != 34 && $0 != 127 }
    }

    /// The URL of a Location; nil when it is on another host.
    private static func place(_ location: String, of url: String) -> String? {
        guard let base = URL(string: url), let place = URL(string: location, relativeTo: base)?.absoluteURL,
            place.scheme == base.scheme, place.host == base.host, place.port == base.port
        else { return nil }
        return place.absoluteString
    }
}
