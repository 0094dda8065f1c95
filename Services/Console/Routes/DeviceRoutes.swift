import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Connected devices, one device with its channels, and the operator's actions on a device (C1).
struct DeviceRoutes: Sendable {
    /// Rows of one page of the list.
    private static let pageRows = 50

    let control: ControlService
    /// The address of the gateway's demo page.
    let devices: DeviceAddress

    /// A page of the list, in the order of device ids.
    struct List: Encodable, Sendable {
        let devices: [DeviceItem]
        /// The value of `after` for the next page; absent on the last page.
        let next: String?

        // For pages alone.
        let device: String
        let user: String
        /// The page of the requested device, connected or not.
        let devicePage: String?
        let isEmpty: Bool
        let after: String?
        let browserDevice: String?
        let diagnosis: String
        let mayChange: Bool

        private enum CodingKeys: String, CodingKey { case devices, next }
    }

    /// A channel of a device, with its head and sync point.
    struct Channel: Encodable, Sendable {
        let bizType: String
        let scope: String
        let target: String
        /// The highest oplog id of the channel.
        let head: Int64
        /// The device has stored the channel up to this oplog id.
        let syncPoint: Int64

        // For pages alone.
        let scopeWord: String
        let targetWord: String
        let isBehind: Bool

        private enum CodingKeys: String, CodingKey { case bizType, scope, target, head, syncPoint }
    }

    /// One device.
    struct Detail: Encodable, Sendable {
        let deviceId: String
        /// Absent: the device is not connected.
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
            RouteInput("device", "Only the device with this id."),
            RouteInput("user", "Only devices of this user."),
            RouteInput("after", "The `next` of the previous page."),
        ]
        return [
            Route(method: .get, pattern: RoutePattern(all), access: viewer, summary: "Connected devices.") {
                request throws(ConsoleFault) in
                .page(page(request, "devices", "tab.devices", content: try await list(request)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + all), access: viewer,
                summary: "Connected devices of an instance, in the order of their ids.", queries: queries,
                example: AnswerExamples.devices
            ) { request throws(ConsoleFault) in .json(try await list(request)) },
            Route(
                method: .get, pattern: RoutePattern("/instances/{instance}/device"), access: viewer,
                summary: "One device."
            ) { request throws(ConsoleFault) in
                .page(
                    page(request, "device", "title.device", try deviceID(request), content: try await one(request)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1/instances/{instance}/device"), access: viewer,
                summary: "One device, connected or not, with the sync points of its channels.",
                queries: [RouteInput("device", required: true, "The id.")], example: AnswerExamples.device
            ) { request throws(ConsoleFault) in .json(try await one(request)) },
            Route(
                method: .post, pattern: RoutePattern("/api/v1" + all + "/disconnect"), access: .instance(.operations),
                summary: "Closes a device's connection; the device can connect again.",
                inputs: [RouteInput("deviceId", required: true, "The id.")]
            ) { request throws(ConsoleFault) in
                let id = try input(request)
                let instance = request.instanceID.text
                let reply = try await control.operate(by: try request.signedIn()) {
                    $0.disconnect.instanceID = instance
                    $0.disconnect.deviceID = id
                }
                guard reply.disconnect.connected else { throw .noSuch("connection", id) }
                return .done
            },
            Route(
                method: .post, pattern: RoutePattern("/api/v1" + all + "/release"), access: .instance(.operations),
                summary: "Removes the secret of a device id: the next device that connects with the id is bound to it.",
                inputs: [RouteInput("deviceId", required: true, "The id.")]
            ) { request throws(ConsoleFault) in
                let id = try input(request)
                let device = Mss_Bus_V1_ReleaseDevice.with {
                    $0.instanceID = request.instanceID.text
                    $0.deviceID = id
                }
                try await control.change(by: try request.signedIn()) { $0.releaseDevice = device }
                return .done
            },
        ]
    }

    private func input(_ request: ConsoleRequest) throws(ConsoleFault) -> String {
        let id = try request.input(Input.self).deviceId
        guard !id.isEmpty, id.utf16.count <= Limits.linkTokenUnits, !id.utf8.contains(0) else {
            throw .wrong("deviceId", "fault.missing")
        }
        return id
    }

    private func deviceID(_ request: ConsoleRequest) throws(ConsoleFault) -> String {
        guard let id = request.query["device"], id.utf16.count <= Limits.linkTokenUnits, !id.utf8.contains(0) else {
            throw .wrong("device", "fault.missing")
        }
        return id
    }

    private func page(
        _ request: ConsoleRequest, _ template: String, _ title: String, _ detail: String = "", content: any Sendable
    ) -> PageContent {
        PageContent(
            template: template, title: title, detail: detail, tab: .devices, instanceID: request.instanceID,
            content: content)
    }

    private func list(_ request: ConsoleRequest) async throws(ConsoleFault) -> List {
        let instance = try control.instance(request.instanceID)
        let (user, after) = ((request.query["user"] ?? "").trimmed, request.query["after"] ?? "")
        let device = (request.query["device"] ?? "").trimmed
        let found = try await devices(of: instance.id, device: device, user: user, after: after, request)
        let rows = found.prefix(Self.pageRows)
        let next = found.count > rows.count ? rows.last?.deviceID : nil
        let browser = devices.page.map { page in
            page
                + Paths.query([("instance", instance.id.text), ("user", user.isEmpty ? "u1" : user), ("session", "s1")])
        }
        return List(
            devices: rows.map { DeviceItem($0, of: instance.id, request.words) }, next: next, device: device,
            user: user,
            devicePage: device.isEmpty ? nil : Paths.page(instance.id, "device", query: [("device", device)]),
            isEmpty: rows.isEmpty,
            after: next.map { Paths.page(instance.id, "devices", query: [("user", user), ("after", $0)]) },
            browserDevice: browser, diagnosis: Paths.page(instance.id, "diagnosis"),
            mayChange: Access.instance(.operations).allows(request.principal?.account, instance: instance.id))
    }

    /// Connected devices: one more than a page when there is a next page.
    ///
    /// - Parameters:
    ///   - device: only the device with this id; empty: all.
    ///   - user: only devices of this user; empty: all.
    private func devices(
        of instanceID: InstanceID, device: String, user: String, after: String, _ request: ConsoleRequest
    ) async throws(ConsoleFault) -> [Mss_Bus_V1_DeviceRow] {
        let principal = try request.signedIn()
        guard !device.isEmpty else {
            return try await control.operate(by: principal) {
                $0.devices.instanceID = instanceID.text
                $0.devices.userID = user
                $0.devices.afterDeviceID = after
                $0.devices.limit = UInt32(Self.pageRows + 1)
            }.devices.devices
        }
        guard device.utf16.count <= Limits.linkTokenUnits, !device.utf8.contains(0) else { return [] }
        let reply = try await control.operate(by: principal) {
            $0.device.instanceID = instanceID.text
            $0.device.deviceID = device
        }.device
        return reply.hasDevice && (user.isEmpty || reply.device.userID == user) ? [reply.device] : []
    }

    private func one(_ request: ConsoleRequest) async throws(ConsoleFault) -> Detail {
        let instance = try control.instance(request.instanceID)
        let id = try deviceID(request)
        let reply = try await control.operate(by: try request.signedIn()) {
            $0.device.instanceID = instance.id.text
            $0.device.deviceID = id
        }
        let channels = reply.device.channels.compactMap { channel -> Channel? in
            guard let kind = ChannelKind(bus: channel.kind) else { return nil }
            let (scope, target) = (kind.scope.rawValue, kind.target.rawValue)
            return Channel(
                bizType: channel.bizType, scope: scope, target: target, head: channel.head,
                syncPoint: channel.syncPoint, scopeWord: request.words.text("scope.\(scope)"),
                targetWord: request.words.text("target.\(target)"), isBehind: channel.syncPoint < channel.head)
        }
        return Detail(
            deviceId: id,
            connection: reply.device.hasDevice ? DeviceItem(reply.device.device, of: instance.id, request.words) : nil,
            channels: channels, list: Paths.page(instance.id, "devices"),
            data: Paths.page(instance.id, "data", query: [("by", "device"), ("id", id)]),
            api: "/api/v1" + Paths.page(instance.id, "devices"),
            mayChange: Access.instance(.operations).allows(request.principal?.account, instance: instance.id))
    }
}

/// The public address of the gateways.
struct DeviceAddress: Sendable {
    let host: String
    let port: Int
    /// The URL of a gateway's demo page, which is a device in the browser; nil when gateways do not serve it.
    var page: String?
}
