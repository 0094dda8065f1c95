import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Live sessions, one device with its channels, and what an operator may do to it (spec C1).
struct DeviceArea: Sendable {
    /// Rows of one page of the list.
    private static let pageRows = 50

    let desk: ControlDesk
    /// A gateway's page that is a device in the browser.
    let devices: DeviceAddress

    /// A page of the list, in the order of device ids.
    struct List: Encodable, Sendable {
        let devices: [DeviceItem]
        /// Ask on with `after` = this; absent: there are no more.
        let next: String?

        // For pages alone.
        let device: String
        let user: String
        /// Of a device that was asked for and is not connected.
        let devicePage: String?
        let isEmpty: Bool
        let after: String?
        let browserDevice: String?
        let diagnosis: String
        let mayChange: Bool

        private enum CodingKeys: String, CodingKey { case devices, next }
    }

    /// Where a channel of a device stands.
    struct Channel: Encodable, Sendable {
        let bizType: String
        let scope: String
        let target: String
        /// The newest oplog id.
        let head: Int64
        /// Stored up to this one.
        let syncPoint: Int64

        // For pages alone.
        let scopeWord: String
        let targetWord: String
        let isBehind: Bool

        private enum CodingKeys: String, CodingKey { case bizType, scope, target, head, syncPoint }
    }

    /// One device.
    struct One: Encodable, Sendable {
        let deviceId: String
        /// Absent: it is not connected.
        let connection: DeviceItem?
        let channels: [Channel]

        // For pages alone.
        let list: String
        let data: String
        let api: String
        let mayChange: Bool

        private enum CodingKeys: String, CodingKey { case deviceId, connection, channels }
    }

    private struct Input: Decodable { let deviceId: String }

    var routes: [Route] {
        let viewer = Access.instance(.viewer)
        let all = "/instances/{instance}/devices"
        let queries = [
            RouteInput("device", "Only the device of this id."),
            RouteInput("user", "Only devices of this user."),
            RouteInput("after", "The `next` of the page before."),
        ]
        return [
            Route(method: .get, pattern: RoutePattern(all), access: viewer, summary: "Connected devices.") {
                exchange throws(ConsoleFault) in
                .page(page(exchange, "devices", "tab.devices", content: try await list(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + all), access: viewer,
                summary: "Connected devices of an instance, in the order of their ids.", queries: queries,
                example: AnswerExamples.devices
            ) { exchange throws(ConsoleFault) in .json(try await list(exchange)) },
            Route(
                method: .get, pattern: RoutePattern("/instances/{instance}/device"), access: viewer,
                summary: "One device."
            ) { exchange throws(ConsoleFault) in
                .page(
                    page(exchange, "device", "title.device", try deviceID(exchange), content: try await one(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1/instances/{instance}/device"), access: viewer,
                summary: "One device, connected or not, and where its channels stand.",
                queries: [RouteInput("device", required: true, "Its id.")], example: AnswerExamples.device
            ) { exchange throws(ConsoleFault) in .json(try await one(exchange)) },
            Route(
                method: .post, pattern: RoutePattern("/api/v1" + all + "/disconnect"), access: .instance(.operations),
                summary: "Closes a device's connection; it comes back when it wants to.",
                inputs: [RouteInput("deviceId", required: true, "Its id.")]
            ) { exchange throws(ConsoleFault) in
                let id = try input(exchange)
                let instance = exchange.instanceID.text
                let reply = try await desk.operate(by: try exchange.signedIn()) {
                    $0.disconnect.instanceID = instance
                    $0.disconnect.deviceID = id
                }
                guard reply.disconnect.connected else { throw .noSuch("connection", id) }
                return .done
            },
            Route(
                method: .post, pattern: RoutePattern("/api/v1" + all + "/release"), access: .instance(.operations),
                summary: "Forgets the secret of a device id: the next device that connects with the id gets it.",
                inputs: [RouteInput("deviceId", required: true, "The id.")]
            ) { exchange throws(ConsoleFault) in
                let id = try input(exchange)
                let device = Mss_Bus_V1_ReleaseDevice.with {
                    $0.instanceID = exchange.instanceID.text
                    $0.deviceID = id
                }
                try await desk.change(by: try exchange.signedIn()) { $0.releaseDevice = device }
                return .done
            },
        ]
    }

    private func input(_ exchange: Exchange) throws(ConsoleFault) -> String {
        let id = try exchange.input(Input.self).deviceId
        guard !id.isEmpty, id.utf16.count <= Limits.linkTokenUnits, !id.utf8.contains(0) else {
            throw .wrong("deviceId", "fault.missing")
        }
        return id
    }

    private func deviceID(_ exchange: Exchange) throws(ConsoleFault) -> String {
        guard let id = exchange.query["device"], id.utf16.count <= Limits.linkTokenUnits, !id.utf8.contains(0) else {
            throw .wrong("device", "fault.missing")
        }
        return id
    }

    private func page(
        _ exchange: Exchange, _ template: String, _ title: String, _ detail: String = "", content: any Sendable
    ) -> PageContent {
        PageContent(
            template: template, title: title, detail: detail, tab: .devices, instanceID: exchange.instanceID,
            content: content)
    }

    private func list(_ exchange: Exchange) async throws(ConsoleFault) -> List {
        let instance = try desk.instance(exchange.instanceID)
        let (user, after) = ((exchange.query["user"] ?? "").trimmed, exchange.query["after"] ?? "")
        let device = (exchange.query["device"] ?? "").trimmed
        let found = try await devices(of: instance.id, device: device, user: user, after: after, exchange)
        let rows = found.prefix(Self.pageRows)
        let next = found.count > rows.count ? rows.last?.deviceID : nil
        let browser = devices.page.map { page in
            page
                + Paths.query([("instance", instance.id.text), ("user", user.isEmpty ? "u1" : user), ("session", "s1")])
        }
        return List(
            devices: rows.map { DeviceItem($0, of: instance.id, exchange.words) }, next: next, device: device,
            user: user,
            devicePage: device.isEmpty ? nil : Paths.page(instance.id, "device", query: [("device", device)]),
            isEmpty: rows.isEmpty,
            after: next.map { Paths.page(instance.id, "devices", query: [("user", user), ("after", $0)]) },
            browserDevice: browser, diagnosis: Paths.page(instance.id, "diagnosis"),
            mayChange: Access.instance(.operations).allows(exchange.visitor?.account, instance: instance.id))
    }

    /// Connected devices, one more than a page has when there are more.
    ///
    /// - Parameters:
    ///   - device: only that of this id; empty: all.
    ///   - user: only those of this user; empty: all.
    private func devices(
        of instanceID: InstanceID, device: String, user: String, after: String, _ exchange: Exchange
    ) async throws(ConsoleFault) -> [Mss_Bus_V1_DeviceRow] {
        let visitor = try exchange.signedIn()
        guard !device.isEmpty else {
            return try await desk.operate(by: visitor) {
                $0.devices.instanceID = instanceID.text
                $0.devices.userID = user
                $0.devices.afterDeviceID = after
                $0.devices.limit = UInt32(Self.pageRows + 1)
            }.devices.devices
        }
        guard device.utf16.count <= Limits.linkTokenUnits, !device.utf8.contains(0) else { return [] }
        let reply = try await desk.operate(by: visitor) {
            $0.device.instanceID = instanceID.text
            $0.device.deviceID = device
        }.device
        return reply.hasDevice && (user.isEmpty || reply.device.userID == user) ? [reply.device] : []
    }

    private func one(_ exchange: Exchange) async throws(ConsoleFault) -> One {
        let instance = try desk.instance(exchange.instanceID)
        let id = try deviceID(exchange)
        let reply = try await desk.operate(by: try exchange.signedIn()) {
            $0.device.instanceID = instance.id.text
            $0.device.deviceID = id
        }
        let channels = reply.device.channels.compactMap { channel -> Channel? in
            guard let kind = ChannelKind(bus: channel.kind) else { return nil }
            let (scope, target) = (kind.isGlobal ? "global" : "appointed", kind.needsUser ? "user" : "device")
            return Channel(
                bizType: channel.bizType, scope: scope, target: target, head: channel.head,
                syncPoint: channel.syncPoint, scopeWord: exchange.words.text("scope.\(scope)"),
                targetWord: exchange.words.text("target.\(target)"), isBehind: channel.syncPoint < channel.head)
        }
        return One(
            deviceId: id,
            connection: reply.device.hasDevice ? DeviceItem(reply.device.device, of: instance.id, exchange.words) : nil,
            channels: channels, list: Paths.page(instance.id, "devices"),
            data: Paths.page(instance.id, "data", query: [("by", "device"), ("id", id)]),
            api: "/api/v1" + Paths.page(instance.id, "devices"),
            mayChange: Access.instance(.operations).allows(exchange.visitor?.account, instance: instance.id))
    }
}
