package import Foundation
import NIOCore
package import NIOHTTP1
import ServiceKit
package import SyncModel

/// Calls tenants' endpoints over HTTP, and only where an operator allows it (spec V7).
package struct TenantCaller: Sendable {
    private let limit: Duration
    private let policy: CalloutPolicy
    private let resolver: any HostResolving
    private let connections: TenantConnections

    /// - Parameters:
    ///   - limit: for a whole call, from the name's lookup to the answer's last byte.
    ///   - connectLimit: of that, to connect and to shake hands (reliability SEC12).
    ///   - bodyMax: bytes of an answer's body.
    ///   - authorityFile: PEM of the authorities that sign tenants' certificates; nil: the system's.
    /// - Throws: when the file cannot be read.
    package init(
        limit: Duration, connectLimit: Duration = .seconds(1), bodyMax: Int, policy: CalloutPolicy,
        authorityFile: String? = nil, resolver: any HostResolving = SystemResolver()
    ) throws {
        self.limit = limit
        self.policy = policy
        self.resolver = resolver
        connections = try TenantConnections(
            connectLimit: connectLimit, bodyMax: bodyMax, authorityFile: authorityFile)
    }

    /// The URL, read and found to be allowed as it is written; what its host resolves to is checked with each call.
    package func url(_ text: String) throws(CalloutRefusal) -> CalloutURL { try policy.url(text) }

    /// Posts JSON and gives the answer, whatever its status; never later than the limit.
    ///
    /// - Parameters:
    ///   - fields: of the request's head, beside host, type and length.
    ///   - instanceID: whose endpoint it is; tenants do not share connections.
    /// - Throws: `CalloutRefusal` when it is not called, `CalloutError` and the errors of connections when there is no
    ///   answer. They name addresses and states, never headers or bodies.
    package func post(
        _ body: Data, to url: CalloutURL, fields: HTTPHeaders, of instanceID: InstanceID
    ) async throws -> TenantResponse {
        var head = HTTPRequestHead(version: .http1_1, method: .POST, uri: url.requestTarget)
        head.headers = ["Host": url.hostField, "Content-Type": "application/json", "Accept": "application/json"]
        head.headers.add(contentsOf: fields)
        head.headers.add(name: "Content-Length", value: "\(body.count)")
        let deadline = NIODeadline.now() + .nanoseconds(limit.wholeMilliseconds * 1_000_000)
        return try await exchange(head, ByteBuffer(bytes: body), with: url, of: instanceID, by: deadline)
    }

    /// Ends the connections; nothing may be asked afterwards.
    package func close() { connections.close() }

    /// Resolves once, checks every address, and asks at one of them.
    private func exchange(
        _ head: HTTPRequestHead, _ body: ByteBuffer, with url: CalloutURL, of instanceID: InstanceID,
        by deadline: NIODeadline
    ) async throws -> TenantResponse {
        let addresses = try await addresses(of: url, by: deadline)
        try policy.check(addresses, port: url.port)
        for address in addresses {
            let key = TenantConnections.Key(instanceID, url, at: address)
            guard let waiting = connections.waiting(key) else { continue }
            do {
                return try await exchange(head, body, on: waiting, key, by: deadline)
            } catch let error as CalloutError where error != .closed {
                throw error
            } catch {
                // It had been idle, and the tenant's server was about to close it: a new one decides.
                break
            }
        }
        var failure: any Error = CalloutError.notInTime
        for address in addresses {
            let key = TenantConnections.Key(instanceID, url, at: address)
            let channel: any Channel
            do {
                channel = try await connections.connect(key, by: deadline)
            } catch {
                failure = error
                continue
            }
            return try await exchange(head, body, on: channel, key, by: deadline)
        }
        throw failure
    }

    private func exchange(
        _ head: HTTPRequestHead, _ body: ByteBuffer, on channel: any Channel, _ key: TenantConnections.Key,
        by deadline: NIODeadline
    ) async throws -> TenantResponse {
        let answer = try await connections.exchange(head, body, on: channel, by: deadline)
        if answer.keepsConnection, answer.status.code < 500 {
            connections.keep(channel, for: key)
        } else {
            channel.close(promise: nil)
        }
        return answer
    }

    private func addresses(of url: CalloutURL, by deadline: NIODeadline) async throws -> [IPAddress] {
        switch url.host {
        case .address(let address): return [address]
        case .name(let name):
            let loop = connections.loop
            let found = loop.makePromise(of: [IPAddress].self)
            let timer = loop.scheduleTask(deadline: deadline) { found.fail(CalloutError.notInTime) }
            defer { timer.cancel() }
            resolver.addresses(of: name, on: loop).cascade(to: found)
            return try await found.futureResult.get()
        }
    }
}
