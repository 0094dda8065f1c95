import Foundation
import SyncModel
import SyncStore
import TestSupport
import Testing

extension ExclusiveSystem {
    @Suite("Figures")
    struct FigureTests {
        let stack: Stack

        init() throws { stack = try Stack.running }

        @Test("S1, S2: figures are correct after random pushes, while the aggregator and RabbitMQ are killed")
        func truth() async throws {
            let file = stack.folder.appending(path: "figures_app.json")
            try FigureCampaign.controlData.write(to: file, atomically: true, encoding: .utf8)
            let applied = try await stack.tool(["apply", file.path])
            #expect(applied.status == 0, "\(applied.output)")
            let (stack, database) = (stack, stack.database())
            let pushes = TestGear.count(1_500, soak: 20_000)
            let campaign = FigureCampaign(stack)
            try await campaign.run(pushes: pushes, database: database) {
                let rounds = Array(repeating: ["statistics", "rabbitmq", "statistics"], count: 1 + pushes / 4_000)
                for name in rounds.joined() {
                    let process = try stack.process(name)
                    let starts = process.starts
                    process.kill()
                    try await eventually("\(name) is whole again", within: .seconds(30)) {
                        guard process.starts > starts else { return false }
                        return await stack.isReady()
                    }
                }
            }
            #expect(try await campaign.faults(in: database) == [])
            await database.close()
        }

        @Test("S3: a device's confirmation is in the figures within 5 s, and the figures say how recent they are")
        func lag() async throws {
            let database = stack.database()
            let device = TestDevice(stack, user: "s3-u", device: "s3-d")
            let target = TargetAddress(instanceID: InstanceID(Stack.instance), kind: .user, target: device.user)
            try await device.connected {
                let answer = try await Caller(apis: stack.apis).push("UCHAT", to: device.user, id: "s3", payload: "s3")
                try await eventually("it has arrived", within: .seconds(5)) {
                    let list = try await database.runAsConsole(FigureStore.pushes(of: target, limit: 10))
                    return list.first?.arrivedAt != nil && list.map(\.oplogID.value) == [answer.oplogId]
                }
                let arrived = try await database.runAsConsole(FigureStore.pushes(of: target, limit: 1)).first?.arrivedAt
                try await eventually("the figures cover that time", within: .seconds(5)) {
                    guard let arrived else { return false }
                    return try await database.runAsConsole(FigureStore.foldedUntil).map { $0 >= arrived } ?? false
                }
            }
            await database.close()
        }
    }
}
