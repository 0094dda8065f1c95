import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Data query: the pushes to a user or a device, and their arrivals (C7, S2).
struct DataRoutes: Sendable {
    /// Rows of one page of the push list.
    private static let pageRows = 50

    let database: Database
    let control: ControlService

    /// A line of the push list.
    struct Line: Encodable, Sendable {
        let bizType: String
        let oplogId: Int64
        let global: Bool
        /// Milliseconds since 1970; absent: the push has not been sent.
        let firstPushAt: Int64?
        /// Absent: no app has confirmed the push.
        let arrivedAt: Int64?

        // For pages alone.
        let firstText: String?
        let arrivedText: String?
        let trace: String

        private enum CodingKeys: String, CodingKey { case bizType, oplogId, global, firstPushAt, arrivedAt }
    }

    /// The figures of a user or device, and a page of its pushes.
    struct Result: Encodable, Sendable {
        let by: String
        let id: String
        let connected: Bool
        /// Pushes and arrivals of the last 30 days.
        let pushes: Int64
        let arrivals: Int64
        let list: [Line]
        /// The value of `before` for the next page; absent on the last page.
        let next: String?

        // For pages alone.
        let isEmpty: Bool
        let older: String?
        let devices: [DeviceItem]
        /// The page of the device, connected or not.
        let devicePage: String
        let hasMoreDevices: Bool

        private enum CodingKeys: String, CodingKey { case by, id, connected, pushes, arrivals, list, next }
    }

    /// The page, with the result when an id was entered.
    struct Page: Sendable {
        let id: String
        let isUser: Bool
        let result: Result?
        let deadLetters: String
        let operations: String
    }

    var routes: [Route] {
        let path = "/instances/{instance}/data"
        return [
            Route(method: .get, pattern: RoutePattern(path), access: .instance(.viewer), summary: "Data query.") {
                request throws(ConsoleFault) in
                let instance = try control.instance(request.instanceID)
                let page = Page(
                    id: (request.query["id"] ?? "").trimmed, isUser: request.query["by"] != "device",
                    result: request.query["id"] == nil ? nil : try await result(request),
                    deadLetters: Paths.page(instance.id, "dead-letters"),
                    operations: Paths.page(instance.id, "operations"))
                return .page(
                    PageContent(
                        template: "data", title: "tab.data", tab: .data, instanceID: instance.id, content: page))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + path), access: .instance(.viewer),
                summary: "Pushes and arrivals of a user or device in the last 30 days, and the list, newest first.",
                queries: [
                    RouteInput("by", "user (default) or device."), RouteInput("id", required: true, "The id."),
                    RouteInput("before", "The `next` of the previous page."),
                ], example: AnswerExamples.data
            ) { request throws(ConsoleFault) in .json(try await result(request)) },
        ]
    }

    private func result(_ request: ConsoleRequest) async throws(ConsoleFault) -> Result {
        let instance = try control.instance(request.instanceID)
        let id = (request.query["id"] ?? "").trimmed
        guard !id.isEmpty, id.utf16.count <= Limits.linkTokenUnits, !id.utf8.contains(0) else {
            throw .wrong("id", "fault.missing")
        }
        let isUser = request.query["by"] != "device"
        let target = TargetAddress(instanceID: instance.id, kind: isUser ? .user : .device, target: id)
        let figures = try await database.run(FigureStore.figures(of: target))
        let cursor = request.query["before"].flatMap(PushCursor.init)
        let pushes = try await database.run(
            FigureStore.pushes(of: target, before: cursor, limit: Self.pageRows + 1))
        let rows = pushes.prefix(Self.pageRows)
        let next = pushes.count > rows.count ? rows.last?.cursor.text : nil
        let devices = try await devices(of: id, isUser: isUser, instance.id, request)
        let by = isUser ? "user" : "device"
        return Result(
            by: by, id: id, connected: !devices.isEmpty, pushes: figures.pushes, arrivals: figures.arrivals,
            list: rows.map { line($0, target, instance.id) }, next: next, isEmpty: rows.isEmpty && cursor == nil,
            older: next.map {
                Paths.page(instance.id, "data", query: [("by", by), ("id", id), ("before", $0)])
            }, devices: Array(devices.prefix(Self.devicesMax)),
            devicePage: Paths.page(instance.id, "device", query: [("device", id)]),
            hasMoreDevices: devices.count > Self.devicesMax)
    }

    private static let devicesMax = 20

    private func line(_ push: FigureStore.Push, _ target: TargetAddress, _ instanceID: InstanceID) -> Line {
        let isGlobal = push.kind.isGlobal
        return Line(
            bizType: push.bizType.text, oplogId: push.oplogID.value, global: isGlobal,
            firstPushAt: push.firstHandedOutAt?.milliseconds, arrivedAt: push.arrivedAt?.milliseconds,
            firstText: push.firstHandedOutAt?.text, arrivedText: push.arrivedAt?.text,
            trace: Paths.page(
                instanceID, "trace",
                query: [
                    ("bizType", push.bizType.text), ("linkToken", isGlobal ? nil : target.target),
                    ("oplogId", "\(push.oplogID.value)"),
                    ("deviceId", target.kind == .device && isGlobal ? target.target : nil),
                    ("user", target.kind == .user && isGlobal ? target.target : nil),
                ]))
    }

    /// The connected devices of a user, or the device itself.
    private func devices(
        of id: String, isUser: Bool, _ instanceID: InstanceID, _ request: ConsoleRequest
    ) async throws(ConsoleFault) -> [DeviceItem] {
        let principal = try request.signedIn()
        guard isUser else {
            let reply = try await control.operate(by: principal) {
                $0.device.instanceID = instanceID.text
                $0.device.deviceID = id
            }
            return reply.device.hasDevice ? [DeviceItem(reply.device.device, of: instanceID, request.words)] : []
        }
        let reply = try await control.operate(by: principal) {
            $0.devices.instanceID = instanceID.text
            $0.devices.userID = id
            $0.devices.limit = UInt32(Self.devicesMax + 1)
        }
        return reply.devices.devices.map { DeviceItem($0, of: instanceID, request.words) }
    }
}
