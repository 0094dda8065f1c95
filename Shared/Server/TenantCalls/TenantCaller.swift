package import Foundation
import NIOCore
package import NIOHTTP1
import ServiceKit
package import SyncModel

/// Calls tenants' endpoints over HTTP, but only those that an operator allows (V7).
package struct TenantCaller: Sendable {
    private let limit: Duration
    private let policy: CalloutPolicy
    private let resolver: any HostResolving
    private let connections: TenantConnections

    /// - Parameters:
    ///   - limit: for a whole call, from the lookup of the name to the last byte of the response.
    ///   - connectLimit: the part of it for connecting and the TLS handshake (SEC12).
    ///   - bodyMax: maximum bytes of a response body.
    ///   - authorityFile: PEM file with the authorities of tenants' certificates; nil: the system's.
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

    /// Reads a URL and checks it against the allowed endpoints. Each call also checks the addresses of the host.
    package func url(_ text: String) throws(CalloutRefusal) -> CalloutURL { try policy.url(text) }

    /// Posts JSON and returns the response with any status, within the limit.
    ///
    /// - Parameters:
    ///   - fields: header fields besides host, content type and content length.
    ///   - instanceID: the owner of the endpoint; tenants do not share connections.
    /// - Throws: `CalloutRefusal` for an endpoint that must not be called; `CalloutError` or a connection error without
    ///   a response. The texts contain addresses and states, never headers or bodies.
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

    /// Closes the connections; no call may follow.
    package func close() { connections.close() }

    /// Resolves once, checks every address, and sends the request to one of them.
    private func exchange(
        _ head: HTTPRequestHead, _ body: ByteBuffer, with url: CalloutURL, of instanceID: InstanceID,
        by deadline: NIODeadline
    ) async throws -> TenantResponse {
        let addresses = try await addresses(of: url, by: deadline)
        try policy.check(addresses, port: url.port)
        for address in addresses {
            let key = TenantConnections.Key(instanceID, url, at: address)
            guard let idle = connections.idleConnection(for: key) else { continue }
            do {
                return try await exchange(head, body, on: idle, key, by: deadline)
            } catch let error as CalloutError where error != .closed {
                throw error
            } catch {
                // The tenant's server has closed this idle connection: continue with a new one.
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
            connections.release(channel, for: key)
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

/// Why an allowed call has no response.
package enum CalloutError: Error, CustomStringConvertible {
    case tooLong
    case closed
    case notInTime

    package var description: String {
        switch self {
        case .tooLong: "the answer, its head or its framing is too long"
        case .closed: "the connection was closed before the answer was whole"
        case .notInTime: "no answer within the limit"
        }
    }
}
