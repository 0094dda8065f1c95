import Foundation
import LegacySamples
import MobileSync
import MobileSyncLegacy
import TestSupport
import Testing

extension SteadySystem {
    @Suite("The guide's samples, rebuilt, on the compatibility API, over TLS")
    struct LegacySampleTests: RuleSuite {
        let stack: Stack
        let caller: Caller
        private static let bytes = Data((0...255).map { UInt8($0) })

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis)
        }

        // MARK: Android

        @Test("K1, K10: Android: initialise does not connect, the foreground does, the background disconnects at once")
        func androidLifeCycle() async throws {
            let (application, user) = try await application("android-life")
            try await process {
                let app = AndroidSample(bizType: "UCHAT")
                app.create(application)
                #expect(app.signIn(user, session: nil))
                let stored = await caller.call("UCHAT", to: user, id: "1", payload: "stored")
                #expect(stored?.msg == "NOT_ONLINE")
                #expect(!MPSync.isConnected())
                app.enterForeground()
                try await shows(["stored"]) { app.items }
                #expect(MPSync.isConnected())
                app.enterBackground()
                try await eventually("disconnected", within: .seconds(5)) { !MPSync.isConnected() }
                try await answers("NOT_ONLINE", to: user)
                let before = app.items.count
                app.enterForeground()
                try await eventually("the backlog has arrived", within: .seconds(10)) { app.items.count > before }
            }
        }

        @Test("K3, K4, K6, K7: Android: text and bytes arrive, are confirmed, and do not come again after a restart")
        func androidRestart() async throws {
            let (application, user) = try await application("android-restart")
            try await process {
                let app = AndroidSample(bizType: "UCHAT")
                app.create(application)
                app.enterForeground()
                #expect(app.signIn(user, session: "s"))
                try await pushTextAndBytes(to: user)
                try await arrive { app.items }
                try await areDelivered(to: user)
            }
            try await process {
                let app = AndroidSample(bizType: "UCHAT")
                app.create(application)
                app.enterForeground()
                #expect(app.signIn(user, session: "s"))
                _ = try await caller.push("UCHAT", to: user, id: "after", payload: "after the restart")
                try await shows(["after the restart"]) { app.items }
            }
        }

        @Test("K2, K3: Android: A's data waits while B is bound, and is delivered in order when A is bound again")
        func androidUsers() async throws {
            let (application, user) = try await application("android-users")
            try await process {
                let app = AndroidSample(bizType: "UCHAT")
                app.create(application)
                app.enterForeground()
                try await stackThenSwitch(
                    user, signIn: app.signIn, register: app.register, unregister: app.unregister,
                    signOut: app.signOut
                ) { app.items }
            }
        }

        // MARK: iOS

        @Test("K1, K5: iOS: initSync connects; the device has its id and its data without a user, at each launch")
        func iosDevice() async throws {
            let (application, _) = try await application("ios-device")
            var devices: [String?] = []
            for launch in 1...2 {
                try await process {
                    let app = IOSSample(bizType: "DEVICE-LOCK")
                    app.launch(application)
                    try await eventually("connected", within: .seconds(10)) {
                        MPSyncInterface.connectStatus() == .connected
                    }
                    let device = try requireValue(MPSyncInterface.getSyncDeviceId(), "no device id")
                    devices.append(device)
                    _ = try await caller.push("DEVICE-LOCK", to: device, id: "\(launch)", payload: "lock \(launch)")
                    try await shows(["lock \(launch)"]) { app.items }
                    try await explains("DEVICE-LOCK", to: device, id: "\(launch)", "DELIVERED")
                }
            }
            #expect(Set(devices).count == 1)
        }

        @Test("K3, K4, K6: iOS: text and bytes arrive by notification, are confirmed, and do not come again")
        func iosRestart() async throws {
            let (application, user) = try await application("ios-restart")
            try await process {
                let app = IOSSample(bizType: "UCHAT")
                app.launch(application)
                #expect(app.signIn(user, session: "s"))
                try await pushTextAndBytes(to: user)
                try await arrive { app.items }
                try await areDelivered(to: user)
            }
            try await process {
                let app = IOSSample(bizType: "UCHAT")
                app.launch(application)
                #expect(app.signIn(user, session: "s"))
                _ = try await caller.push("UCHAT", to: user, id: "after", payload: "after the restart")
                try await shows(["after the restart"]) { app.items }
            }
        }

        @Test("K2, K3: iOS: A's data waits while B is bound, and is delivered in order when A is bound again")
        func iosUsers() async throws {
            let (application, user) = try await application("ios-users")
            try await process {
                let app = IOSSample(bizType: "UCHAT")
                app.launch(application)
                try await stackThenSwitch(
                    user, signIn: app.signIn, register: { #expect(app.register()) },
                    unregister: { #expect(app.unregister()) }, signOut: app.signOut
                ) { app.items }
            }
        }

        // MARK: Shared steps

        /// An installed app with the `meta.config` that `mssctl` prints and the authority beside it (K7), and the name
        /// of its first user.
        private func application(_ name: String) async throws -> (MPSyncApplication, user: String) {
            let bundle = stack.folder.appending(path: "\(name).app")
            try FileManager.default.createDirectory(at: bundle, withIntermediateDirectories: true)
            try FileManager.default.copyItem(
                atPath: stack.certificateAuthority, toPath: bundle.appending(path: "mss-ca.pem").path)
            let file = bundle.appending(path: "meta.config")
            let printed = try await stack.tool([
                "instance", "meta-config", Stack.instance, "--server", "127.0.0.1", "--port", "\(stack.gateways[0])",
            ])
            try Data(printed.output.utf8).write(to: file)
            let application = MPSyncApplication(
                metaConfig: try MetaConfig(contentsOf: file), folder: stack.folder.appending(path: name),
                appVersion: "1.0.0")
            return (application, "\(name)-a")
        }

        /// Runs the body as one process of an app, until the process ends.
        private func process(_ body: () async throws -> Void) async throws {
            let core = CompatibilityCore()
            do {
                try await CompatibilityCore.$shared.withValue(core) { try await body() }
            } catch {
                await core.shutDown()
                throw error
            }
            await core.shutDown()
        }

        private func shows(_ texts: [String], _ items: () -> [SyncItem]) async throws {
            try await eventually("the app shows \(texts), not \(items())", within: .seconds(15)) {
                items().map { String(decoding: $0.content, as: UTF8.self) } == texts
            }
        }

        /// Repeats a push until the answer has this code.
        private func answers(_ code: String, to user: String) async throws {
            try await eventually("the answer is \(code)", within: .seconds(10)) {
                await caller.call("UCHAT", to: user, id: UUID().uuidString, payload: "again")?.msg == code
            }
        }

        private func pushTextAndBytes(to user: String) async throws {
            _ = try await caller.push("UCHAT", to: user, id: "text", payload: #"{"name":"Zoë \"J\""}"#)
            let bytes = await caller.call(
                "UCHAT", to: user, id: "bytes", payload: "", more: ["binaryPayload": Self.bytes.base64EncodedString()])
            #expect(bytes?.success == true)
        }

        private func arrive(_ items: () -> [SyncItem]) async throws {
            try await eventually("both arrive", within: .seconds(15)) { items().count == 2 }
            #expect(items().map(\.content) == [Data(#"{"name":"Zoë \"J\""}"#.utf8), Self.bytes])
            #expect(items().map(\.isBinary) == [false, true])
            #expect(items().map(\.mk) == [1, 2])
            let now = Int64(Date.now.timeIntervalSince1970 * 1_000)
            #expect(items().allSatisfy { (now - 600_000...now + 1_000).contains($0.mct) })
        }

        private func areDelivered(to user: String) async throws {
            for id in ["text", "bytes"] { try await explains("UCHAT", to: user, id: id, "DELIVERED") }
        }

        /// Stores data of A on the device while the app reads nothing, binds B, and binds A again.
        private func stackThenSwitch(
            _ user: String, signIn: (String, String?) -> Bool, register: () -> Void, unregister: () -> Void,
            signOut: () -> Void, _ items: () -> [SyncItem]
        ) async throws {
            let other = user + "-other"
            unregister()
            #expect(signIn(user, nil))
            try await eventually("A is online, and A's data is stored", within: .seconds(15)) {
                await caller.call("UCHAT", to: user, id: UUID().uuidString, payload: "stacked")?.msg == "SUCCESS"
            }
            _ = try await caller.push("UCHAT", to: user, id: "last", payload: "last of A")
            try await explains("UCHAT", to: user, id: "last", "STORED")
            #expect(signIn(other, nil))
            register()
            _ = try await caller.push("UCHAT", to: other, id: "b", payload: "B's")
            try await shows(["B's"], items)
            signOut()
            #expect(signIn(user, nil))
            try await eventually("A's data has arrived", within: .seconds(15)) {
                items().last.map { String(decoding: $0.content, as: UTF8.self) } == "last of A"
            }
            let ids = items().dropFirst().map(\.mk)
            #expect(ids == Array(1...Int64(ids.count)))
        }
    }
}
