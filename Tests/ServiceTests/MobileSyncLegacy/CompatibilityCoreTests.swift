import DeviceProtocol
import Foundation
import Logging
import MobileSync
import Synchronization
import TestSupport
import Testing

@testable import MobileSyncLegacy

@Suite("The compatibility API against a test gateway", .timeLimit(.minutes(5)))
struct CompatibilityCoreTests {
    /// An Android callback that confirms when the test allows it.
    private final class Callback: ISyncCallback {
        let confirms: Bool
        private let shown = Mutex<[SyncMessage]>([])
        var messages: [SyncMessage] { shown.withLock { $0 } }
        /// The oplogs of all messages in order, by their payloads.
        var ids: [String] { messages.flatMap { $0.batch.oplogs.compactMap(\.text) } }

        init(confirms: Bool = true) { self.confirms = confirms }

        func onReceiveMessage(_ message: SyncMessage) {
            shown.withLock { $0.append(message) }
            if confirms { MPSync.reportMsgReceived(message) }
        }
    }

    /// The guide's category of `MPaaSInterface`, as a subclass.
    private final class Interface: MPaaSInterface, @unchecked Sendable {
        let user: String

        init(user: String) { self.user = user }

        override func userId() -> String? { user }
    }

    /// An iOS observer that confirms.
    private final class Observer: Sendable {
        private let shown = Mutex<[String]>([])
        var ops: [String] { shown.withLock { $0 } }

        func receive(_ notification: Notification) {
            shown.withLock { $0.append(notification.userInfo?["op"] as? String ?? "none") }
            MPSyncInterface.responseMessageNotify(notification.userInfo ?? [:])
        }
    }

    /// Collects the calls that the compatibility API logged as wrong.
    private final class LogLines: LogHandler {
        private let lines = Mutex<[LogEvent]>([])
        var calls: [String] { lines.withLock { $0 }.map { $0.metadata?["call"]?.description ?? "none" } }
        var errors: [String] { lines.withLock { $0 }.compactMap { $0.metadata?["error"]?.description } }
        var logLevel: Logger.Level {
            get { .trace }
            set {}
        }
        var metadata: Logger.Metadata {
            get { [:] }
            set {}
        }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { nil }
            set {}
        }

        func log(event: LogEvent) { lines.withLock { $0.append(event) } }
    }

    /// Runs the body as a process of an app that can connect to the gateway.
    private func process(_ body: (FakeGateway, MPSyncApplication) async throws -> Void) async throws {
        let folder = URL(filePath: NSTemporaryDirectory()).appending(path: "core-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let core = CompatibilityCore()
        try await CompatibilityCore.$shared.withValue(core) {
            try await FakeGateway.with { gateway in
                let meta = MetaConfig(host: "127.0.0.1", port: gateway.port, workspaceID: "w", appID: "a")
                try await body(gateway, MPSyncApplication(metaConfig: meta, folder: folder, trust: .plaintext))
            }
        }
        await core.shutDown()
    }

    @Test("K10: before the start nothing crashes, nothing happens, and answers are no") func beforeStart() {
        let observer = Observer()
        CompatibilityCore.$shared.withValue(CompatibilityCore()) {
            MPLogger.setUserId("u")
            MPSync.appToForeground()
            MPSync.appToBackground()
            MPSync.registerBiz("FACE", Callback())
            MPSync.unregisterBiz("FACE")
            MPSync.clearUserInfo()
            #expect(!MPSync.updateUserInfo("s"))
            #expect(!MPSync.isConnected())
            #expect(MPSyncInterface.connectStatus() == .notAvailable)
            #expect(MPSyncInterface.getSyncDeviceId() == nil)
            #expect(!MPSyncInterface.bindUser(withSessionId: "s"))
            #expect(
                !MPSyncInterface.registerSyncBiz(
                    withName: "FACE", syncObserver: observer, selector: Observer.receive))
            #expect(!MPSyncInterface.unRegisterSyncBiz(withName: "FACE", syncObserver: observer))
            #expect(!MPSyncInterface.unregisterSyncBiz(withName: "FACE", syncObserver: observer))
            MPSyncInterface.removeSyncNotificationObserver(observer)
            MPSyncInterface.responseMessageNotify(["op": "[]"])
            MPSyncInterface.unBindUser()
        }
    }

    @Test("K10: a call before the start is logged once, also when it is repeated") func saidOnce() {
        let lines = LogLines()
        CompatibilityCore.$shared.withValue(CompatibilityCore(logger: Logger(label: "test") { _ in lines })) {
            for _ in 0..<3 {
                MPSync.appToForeground()
                MPSyncInterface.unBindUser()
            }
        }
        #expect(lines.calls == ["appToForeground", "unBindUser"])
    }

    @Test("K7: a start that fails is logged and can be tried again") func failedStart() async throws {
        try await process { gateway, application in
            let folder = URL(filePath: "/dev/null/folder")
            MPSyncInterface.initSync(
                with: MPSyncApplication(metaConfig: application.metaConfig, folder: folder, trust: .plaintext))
            #expect(MPSyncInterface.getSyncDeviceId() == nil)
            MPSyncInterface.initSync(with: application)
            let connect = try await gateway.accept().greet()
            #expect(MPSyncInterface.getSyncDeviceId() == connect.deviceID)
        }
    }

    @Test("K5: the device id is the app's, or one of the folder; both APIs have it, UTDevice before the start too")
    func deviceID() async throws {
        try await process { gateway, application in
            #expect(MPSync.getDeviceId() == nil && MPSync.client == nil)
            MPSync.setup(application)
            let made = UTDevice.getUtdid()
            #expect(made?.count == 36 && UTDevice.getUtdid() == made)
            MPSync.initialize()
            MPSync.appToForeground()
            let connect = try await gateway.accept().greet()
            #expect(connect.deviceID == made)
            #expect(MPSync.getDeviceId() == made && MPSyncInterface.getSyncDeviceId() == made)
            #expect(MPSync.client?.deviceID == made)
        }
        try await process { gateway, application in
            MPSyncInterface.initSync(
                with: MPSyncApplication(
                    metaConfig: application.metaConfig, folder: application.folder, trust: .plaintext,
                    deviceID: "utdid-of-before"))
            let connect = try await gateway.accept().greet()
            #expect(connect.deviceID == "utdid-of-before")
            #expect(UTDevice.getUtdid() == "utdid-of-before")
        }
    }

    @Test("K5: a device id that cannot be read is nil, and the reason is logged") func unreadableDeviceID() {
        let lines = LogLines()
        CompatibilityCore.$shared.withValue(CompatibilityCore(logger: Logger(label: "test") { _ in lines })) {
            let meta = MetaConfig(host: "h", port: 1, workspaceID: "w", appID: "a")
            MPSync.setup(MPSyncApplication(metaConfig: meta, folder: URL(filePath: "/dev/null/folder")))
            #expect(UTDevice.getUtdid() == nil)
        }
        #expect(lines.errors.count == 1 && lines.errors[0].contains("check access rights"), "\(lines.errors)")
    }

    @Test("K1: iOS connects by itself, reports its status, and keeps the connection 3 minutes in the background")
    func iosLifeCycle() async throws {
        #expect(MPSyncInterface.backgroundTime == .seconds(180))
        try await process { gateway, application in
            #expect(MPSyncInterface.connectStatus() == .notAvailable)
            MPSyncInterface.initSync(with: application)
            let session = try await gateway.accept()
            #expect(MPSyncInterface.connectStatus() == .connecting)
            _ = try await session.greet()
            try await eventually("connected", within: .seconds(5)) { MPSyncInterface.connectStatus() == .connected }
            CompatibilityCore.shared.setForeground(false, call: "test")
            MPLogger.setUserId("u")
            #expect(MPSyncInterface.bindUser(withSessionId: nil))
            let bind = try await session.nextBind().bindNumber
            session.accept(bind)
            session.push([1], after: 0, upto: 1, bind: bind, bizType: "FACE-L")
            #expect(try await session.nextStored().map(\.upto) == [1])
            #expect(MPSyncInterface.connectStatus() == .connected)
        }
    }

    @Test("K1: the numbers of the connection status are the guide's") func statusNumbers() {
        let all: [SyncStatus] = [.notAvailable, .connecting, .connected, .connectFailed]
        #expect(all.map { MPSyncNetConnectType($0).rawValue } == [0, 1, 2, 3])
    }

    @Test("K1: Android connects in the foreground only, and reports it only after Connected")
    func androidLifeCycle() async throws {
        try await process { gateway, application in
            MPSync.setup(application)
            MPSync.initialize()
            MPSync.initialize()
            #expect(!MPSync.isConnected())
            MPSync.appToForeground()
            let session = try await gateway.accept()
            #expect(!MPSync.isConnected(), "there is a connection, but no greeting")
            let connect = try await session.greet()
            #expect(connect.instanceID == "w_a" && !connect.hasBind)
            try await eventually("connected", within: .seconds(5)) { MPSync.isConnected() }
            MPSync.appToBackground()
            try await session.ended()
            try await eventually("not connected", within: .seconds(5)) { !MPSync.isConnected() }
            MPSync.appToForeground()
            _ = try await gateway.accept().greet()
        }
    }

    @Test("K2: no user no bind; no session is SESSION_DEMO; another user is unbound first; signing out binds nobody")
    func users() async throws {
        try await process { gateway, application in
            MPSyncInterface.initSync(with: application)
            let session = try await gateway.accept()
            _ = try await session.greet()
            #expect(!MPSyncInterface.bindUser(withSessionId: "s"))
            MPLogger.setUserId("")
            #expect(!MPSyncInterface.bindUser(withSessionId: "s"))
            MPLogger.setUserId("a")
            #expect(MPSyncInterface.bindUser(withSessionId: nil))
            let first = try await session.nextBind()
            #expect(first.userID == "a" && first.sessionID == "SESSION_DEMO")
            MPaaSInterface.setSharedInstance(Interface(user: "b"))
            #expect(MPaaSInterface.sharedInstance().userId() == "b")
            #expect(MPSyncInterface.bindUser(withSessionId: "s2"))
            var bind = try await session.nextBind()
            // Unbinding and binding are two steps, which the connection can see as one.
            if bind.userID.isEmpty { bind = try await session.nextBind() }
            #expect(bind.userID == "b" && bind.sessionID == "s2" && bind.bindNumber > first.bindNumber)
            #expect(!MPSyncInterface.bindUser(withSessionId: String(repeating: "x", count: 4_097)), "b stays bound")
            MPSyncInterface.unBindUser()
            #expect(try await session.nextBind().userID.isEmpty)
            MPLogger.setUserId(String(repeating: "x", count: 101))
            MPaaSInterface.setSharedInstance(MPaaSInterface())
            #expect(!MPSyncInterface.bindUser(withSessionId: "s"), "the id is too long")
        }
    }

    @Test(
        "K3, K6: data stacks until a callback is registered, comes in order, and confirming a message confirms it all")
    func android() async throws {
        try await process { gateway, application in
            MPSync.setup(application)
            MPSync.initialize()
            MPLogger.setUserId("u")
            #expect(MPSync.updateUserInfo("s"))
            MPSync.appToForeground()
            let session = try await gateway.accept()
            _ = try await session.greet()
            session.push([1, 2, 5], after: 0, upto: 5, bizType: "FACE-A")
            _ = try await session.nextStored()
            let callback = Callback()
            MPSync.registerBiz("", callback)
            MPSync.registerBiz("FACE-A", callback)
            try await eventually("the message comes", within: .seconds(5)) { !callback.messages.isEmpty }
            let message = try requireValue(callback.messages.first, "no message")
            Self.hasForm(message)
            let report = try await session.nextReport()
            #expect(report.channels.flatMap(\.oplogIds) == [1, 2, 5])
            MPSync.unregisterBiz("FACE-A")
            session.push([6], after: 5, upto: 6, bizType: "FACE-A")
            _ = try await session.nextStored()
            session.push([1], after: 0, upto: 1, bizType: "FACE-B")
            _ = try await session.nextStored()
            let other = Callback()
            MPSync.registerBiz("FACE-B", other)
            try await eventually("the other Sync ID comes", within: .seconds(5)) { !other.messages.isEmpty }
            MPSync.registerBiz("FACE-A", other)
            try await eventually("what stacked comes", within: .seconds(5)) { other.messages.count == 2 }
            #expect(other.messages.map(\.id) == ["1", "6"])
            #expect(callback.messages.count == 1)
        }
    }

    private static func hasForm(_ message: SyncMessage) {
        #expect(message.userId == "u" && message.biz == "FACE-A" && message.id == "5" && !message.hasMore)
        #expect(message.msgData == message.op)
        #expect(message.op.hasPrefix(#"[{"pl":"1","mk":1,"mct":"#))
    }

    @Test("K3, K10: iOS: each observer is notified, by the Sync ID's name; without one data stacks")
    func ios() async throws {
        try await process { gateway, application in
            MPaaSInterface.setSharedInstance(Interface(user: "u"))
            MPSyncInterface.initSync(with: application)
            let session = try await gateway.accept()
            _ = try await session.greet()
            #expect(MPSyncInterface.bindUser(withSessionId: "s"))
            let bind = try await session.nextBind().bindNumber
            session.accept(bind)
            let (first, second) = (Observer(), Observer())
            for observer in [first, second, first] {
                #expect(Self.register("FACE-I", observer))
            }
            #expect(!Self.register("", first) && !Self.register(String(repeating: "B", count: 31), first))
            session.push([1], after: 0, upto: 1, bind: bind, bizType: "FACE-I")
            #expect(try await session.nextReport().channels.flatMap(\.oplogIds) == [1])
            try await eventually("both are notified", within: .seconds(5)) { second.ops.count == 1 }
            #expect(first.ops.count == 1 && first.ops == second.ops)
            MPSyncInterface.removeSyncNotificationObserver(first)
            #expect(!MPSyncInterface.unRegisterSyncBiz(withName: "FACE-I", syncObserver: first))
            #expect(MPSyncInterface.unregisterSyncBiz(withName: "FACE-I", syncObserver: second))
            session.push([2], after: 1, upto: 2, bind: bind, bizType: "FACE-I")
            _ = try await session.nextStored()
            #expect(Self.register("FACE-I", first))
            try await eventually("what stacked comes", within: .seconds(5)) { first.ops.count == 2 }
            #expect(second.ops.count == 1)
        }
    }

    private static func register(_ bizType: String, _ observer: Observer) -> Bool {
        MPSyncInterface.registerSyncBiz(withName: bizType, syncObserver: observer, selector: Observer.receive)
    }

    @Test("K4: unconfirmed it comes again; confirmed it never does, in another process too")
    func confirmation() async throws {
        try await process { gateway, application in
            MPSync.setup(application)
            MPSync.initialize()
            MPLogger.setUserId("u")
            #expect(MPSync.updateUserInfo("s"))
            let silent = Callback(confirms: false)
            MPSync.registerBiz("FACE-C", silent)
            MPSync.appToForeground()
            let session = try await gateway.accept()
            _ = try await session.greet()
            session.push([1], after: 0, upto: 1, bizType: "FACE-C")
            _ = try await session.nextStored()
            try await eventually("it comes", within: .seconds(5)) { silent.messages.count == 1 }
            await CompatibilityCore.shared.shutDown()
            // Each process confirms the messages that it shows: the first one the older messages, the second one the
            // new one.
            for (process, expected) in [["1", "2"], ["3"]].enumerated() {
                let core = CompatibilityCore()
                let callback = Callback()
                try await CompatibilityCore.$shared.withValue(core) {
                    MPSync.setup(application)
                    MPSync.initialize()
                    MPLogger.setUserId("u")
                    #expect(MPSync.updateUserInfo("s"))
                    MPSync.registerBiz("FACE-C", callback)
                    MPSync.appToForeground()
                    let session = try await gateway.accept()
                    _ = try await session.greet()
                    let id = Int64(process + 2)
                    session.push([id], after: id - 1, upto: id, bizType: "FACE-C")
                    try await eventually("it comes", within: .seconds(5)) { callback.messages.last?.id == "\(id)" }
                }
                await core.shutDown()
                #expect(callback.ids == expected)
            }
        }
    }
}
