import Foundation
import TestSupport
import Testing

@testable import LoadGenerator

@Suite("LoadScenario: a load as data") struct LoadScenarioTests {
    private func read(_ text: String) throws -> LoadScenario { try LoadScenario.read(Data(text.utf8)) }

    private func fault(_ text: String) -> String? {
        do {
            _ = try read(text)
            return nil
        } catch { return "\(error)" }
    }

    private func fault(ofStep step: String) -> String? {
        fault(#"{"name": "a", "steps": [{"do": "connect"}, \#(step)]}"#)
    }

    @Test("a scenario lists devices and events") func whole() throws {
        let scenario = try read(
            """
            {"name": "a", "about": "b", "users": 10, "devicesPerUser": 2, "payloadBytes": 50, "connections": 3,
             "bizType": "B", "globalBizType": "G", "slow": {"percent": 10, "milliseconds": 20},
             "steps": [
               {"do": "connect", "concurrency": 5},
               {"do": "push", "name": "p", "call": "batch", "items": 4, "rate": 100, "seconds": 2, "users": 1},
               {"do": "together", "steps": [
                 {"do": "push", "window": 7, "seconds": 3}, {"do": "reconnect", "rate": 4, "seconds": 5}]},
               {"do": "operate", "rate": 30, "seconds": 2, "entities": 5, "burst": 3},
               {"do": "push", "call": "global", "times": 6},
               {"do": "disconnect"},
               {"do": "push", "each": 8, "call": "batch", "items": 4},
               {"do": "connect"},
               {"do": "idle", "seconds": 9}
             ]}
            """)
        #expect(scenario.devices == 20 && scenario.globalPushes == 6)
        #expect(scenario.slow == LoadScenario.Slow(percent: 10, milliseconds: 20))
        let expected: [[LoadStep.Part]] = [
            [.connect(concurrency: 5)],
            [.push(PushStream(pace: .rate(perSecond: 100, seconds: 2), call: .batch(items: 4), users: 1))],
            [.push(PushStream(pace: .window(7, seconds: 3))), .reconnect(perSecond: 4, seconds: 5)],
            [.operate(OperationStream(perSecond: 30, seconds: 2, entities: 5, burst: 3))],
            [.push(PushStream(pace: .times(6), call: .global))], [.disconnect],
            [.push(PushStream(pace: .each(8), call: .batch(items: 4)))], [.connect(concurrency: 64)],
            [.idle(seconds: 9)],
        ]
        #expect(scenario.steps.map(\.parts) == expected)
        #expect(scenario.steps[1].name == "p" && scenario.steps[4].name == "push")
    }

    @Test("a fault is named with its place") func faults() {
        #expect(fault("nonsense")?.hasPrefix("expected JSON") == true)
        #expect(fault("[]") == "expected an object")
        #expect(fault(#"{"steps": []}"#) == "name: expected a text")
        #expect(fault(#"{"name": "a", "steps": []}"#) == "steps: expected a list that is not empty")
        #expect(
            fault(#"{"name": "a", "user": 1, "steps": [{"do": "connect"}]}"#)?.hasPrefix("user: unknown key") == true)
        #expect(
            fault(#"{"name": "a", "users": "ten", "steps": [{"do": "connect"}]}"#)
                == "users: expected a whole number from 1 to 1000000")
        #expect(
            fault(#"{"name": "a", "payloadBytes": 34, "steps": [{"do": "connect"}]}"#)
                == "payloadBytes: expected a whole number from 35 to 4096")
        #expect(fault(ofStep: #"{"do": "wait"}"#)?.hasPrefix(#"steps[1].do: expected one of "connect""#) == true)
        #expect(fault(ofStep: #"{"do": "idle", "rate": 1, "seconds": 2}"#)?.hasPrefix("steps[1].rate: unknown") == true)
        #expect(
            fault(ofStep: #"{"do": "push", "rate": 0, "seconds": 2}"#)?.hasPrefix("steps[1].rate: expected a whole")
                == true)
        #expect(
            fault(ofStep: #"{"do": "push", "rate": 1}"#)?.hasPrefix("steps[1].seconds: expected a whole number") == true
        )
        #expect(fault(ofStep: #"{"do": "push", "rate": 1, "window": 1}"#)?.contains("exactly one of") == true)
        #expect(fault(ofStep: #"{"do": "push", "each": 1, "seconds": 1}"#)?.contains("needs a rate") == true)
        #expect(fault(ofStep: #"{"do": "push", "each": 3, "call": "batch", "items": 2}"#)?.contains("multiple") == true)
        #expect(fault(ofStep: #"{"do": "push", "each": 3, "items": 2}"#)?.contains("needs a batch") == true)
        #expect(fault(ofStep: #"{"do": "push", "times": 3}"#)?.contains("needs a global call") == true)
        #expect(
            fault(ofStep: #"{"do": "together", "steps": [{"do": "connect"}]}"#)
                == "steps[1].steps: only push, operate and reconnect can run together")
    }

    @Test("pushes without receivers are refused") func order() {
        let push = #"{"do": "push", "each": 1}"#
        #expect(fault(#"{"name": "a", "steps": [\#(push), {"do": "connect"}]}"#) == nil)
        #expect(fault(#"{"name": "a", "steps": [\#(push)]}"#)?.contains("expected a connect step after") == true)
        #expect(fault(ofStep: #"{"do": "disconnect"}, \#(push)"#)?.contains("expected a connect step after") == true)
        #expect(
            fault(#"{"name": "a", "steps": [{"do": "push", "window": 1, "seconds": 1}]}"#)?.hasPrefix("steps[0]")
                == true)
        #expect(
            fault(ofStep: #"{"do": "push", "users": 300, "rate": 1, "seconds": 1}"#)?.contains(
                "at most 200, the number of users") == true)
    }

    @Test("other numbers take the place of rates, windows and seconds alone") func adjusted() throws {
        var scenario = try read(
            """
            {"name": "a", "steps": [{"do": "connect"}, {"do": "push", "rate": 1, "seconds": 2},
              {"do": "push", "each": 3}, {"do": "idle", "seconds": 4}]}
            """)
        scenario.pace(rate: nil, window: 50, seconds: 6)
        #expect(scenario.steps[1].streams[0].pace == .window(50, seconds: 6))
        #expect(scenario.steps[2].streams[0].pace == .each(3))
        #expect(scenario.steps[3].parts == [.idle(seconds: 6)])
        scenario.pace(rate: 70, window: nil, seconds: nil)
        #expect(scenario.steps[1].streams[0].pace == .rate(perSecond: 70, seconds: 6))
    }

    @Test("the parts of a run share users and rates, and no user is in two") func parts() throws {
        var scenario = LoadScenario.single(.rate(perSecond: 100, seconds: 1))
        scenario.users = 10
        var users: Set<String> = []
        var (devices, rate) = (0, 0)
        for number in 1...3 {
            let plan = LoadPlan(
                scenario: scenario, part: LoadPlan.Part(number: number, of: 3), instance: "i", run: "abcdefg")
            devices += plan.scenario.devices
            for device in 0..<plan.scenario.devices { users.insert(plan.user(ofDevice: device)) }
            if case .rate(let perSecond, _) = plan.scenario.steps[1].streams[0].pace { rate += perSecond }
        }
        #expect(devices == 10 && users.count == 10 && rate == 100)
    }

    @Test("every scenario in deploy/load can be read") func files() throws {
        let root = ProjectFolder.url
        let folder = root.appending(path: "deploy/load").path
        let files = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".json") }
        #expect(files.count > 10)
        for file in files { _ = try LoadScenario.read(file: "\(folder)/\(file)") }
    }
}
