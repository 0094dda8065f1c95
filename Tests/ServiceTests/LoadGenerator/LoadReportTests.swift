import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import LoadGenerator
@testable import ToolSupport

@Suite("LoadReport: for people and for programs") struct LoadReportTests {
    private func report(resources: ResourceReport? = nil) -> LoadReport {
        let plan = LoadPlan(
            scenario: .single(.rate(perSecond: 100, seconds: 1)), part: LoadPlan.Part(), instance: "i", run: "abcdefg")
        var progress = StreamProgress(stream: plan.scenario.steps[1].streams[0])
        progress.begun = 2
        progress.answers = ["SUCCESS": 2]
        for nanoseconds in [1_000_000, 3_000_000] { progress.deliveryLatency.record(nanoseconds: Int64(nanoseconds)) }
        let step = LoadStepProgress(start: 0, promise: EmbeddedEventLoop().makePromise())
        step.end = 2_000_000_000
        step.isComplete = true
        step.promise.succeed()
        var report = LoadReport(plan)
        var found = LoadStepReport(
            name: "push", step, streams: [StreamReport(progress)], traffic: LoadTraffic(calls: 2, framesIn: 3),
            deliveries: 2)
        found.resources = resources
        report.steps = [found]
        return report
    }

    private func resources() -> ResourceReport {
        let none = ProcessSample(allocations: 0, sends: 0, bodiesSent: 0, bodiesReceived: 0)
        let used = ProcessSample(
            cpuMicroseconds: 3_000, residentBytes: 5_000_000, wakeUps: 7, allocations: 900, sends: 6, bodiesSent: 4,
            bodiesReceived: 2)
        let (before, after) = (WireSample("", wires: [:]), WireSample("", wires: [:]))
        var report = ResourceReport(
            StackProbe.Sample(processes: ["writer-1": used, "tenant": ProcessSample()], wires: after),
            since: StackProbe.Sample(processes: ["writer-1": none, "tenant": ProcessSample()], wires: before))
        report.database = DatabaseSample(rowsInserted: 6, rowsUpdated: 2, transactions: 3, walBytes: 800)
        return report
    }

    @Test("the text has the patterns of scripts, and the verdict") func text() {
        var report = report()
        #expect(report.text.contains("\nPOST to device: p50 1.00 ms, p99 3.00 ms, p99.9 3.00 ms, max 3.00 ms\n"))
        #expect(report.text.hasSuffix("\ncorrect"))
        report.faults.duplicated = 1
        #expect(
            report.text.hasSuffix(
                "duplicated 1, out of order 0, to the wrong device 0, gaps 0, device connections closed 0\nNOT CORRECT")
        )
    }

    @Test("one push that is lost, doubled, reordered or misdirected fails the run") func verdict() {
        let right = report()
        #expect(right.isCorrect)
        let faults: [WritableKeyPath<LoadReport, Int>] = [
            \.lost, \.faults.duplicated, \.faults.outOfOrder, \.faults.strangers, \.faults.gaps,
        ]
        for fault in faults {
            var wrong = right
            wrong[keyPath: fault] = 1
            #expect(!wrong.isCorrect)
        }
    }

    @Test("the JSON has all values and is parsed back unchanged") func json() throws {
        let report = report(resources: resources())
        let data = try report.json()
        #expect(try JSONDecoder().decode(LoadReport.self, from: data) == report)
        let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        #expect(
            Set(object.keys) == [
                "scenario", "run", "part", "users", "devices", "steps", "lost", "faults", "operationFaults",
                "fallenDevices",
            ])
        let step = try #require((object["steps"] as? [[String: Any]])?.first)
        #expect(
            Set(step.keys) == ["name", "seconds", "isComplete", "streams", "traffic", "deliveries", "resources"])
    }

    @Test("figures are by push, of the processes that have ceilings") func figures() {
        let figures = LoadFigures.of(report(resources: resources()))
        #expect(figures["writer-1.allocationsPerPush"] == 450 && figures["writer-1.wakeUpsPerPush"] == 3.5)
        #expect(figures["writer-1.sendsPerPush"] == 3)
        #expect(figures["writer-1.bodiesSentPerPush"] == 2 && figures["database.rowsPerPush"] == 4)
        #expect(figures["device.framesPerPush"] == 1.5 && figures["database.walBytesPerPush"] == 400)
        #expect(!figures.keys.contains { $0.hasPrefix("tenant") })
    }

    @Test("figures of connects are by connect, of the processes that serve devices") func connects() {
        let step = LoadStepProgress(start: 0, promise: EmbeddedEventLoop().makePromise())
        (step.end, step.isComplete, step.connects) = (1_000_000_000, true, 3)
        step.promise.succeed()
        var report = report()
        var found = LoadStepReport(
            name: "connects", step, streams: [], traffic: LoadTraffic(framesIn: 9), deliveries: 0)
        found.resources = resources()
        report.steps.append(found)
        let figures = LoadFigures.of(report)
        #expect(figures["writer-1.sendsPerConnect"] == 2 && figures["writer-1.allocationsPerConnect"] == 300)
        #expect(figures["database.statementsPerConnect"] == 1 && figures["device.framesPerConnect"] == 3)
        #expect(!figures.keys.contains { $0.hasPrefix("ingest") || $0.hasPrefix("tenant") })
    }

    @Test("a figure above its ceiling, or without a measurement, is found") func thresholds() throws {
        var thresholds = LoadThresholds(scenario: "s", ceilings: [:])
        #expect(!thresholds.compare(["a": 1], of: "debug").isWithin)
        thresholds.set([["a": 1, "b": 100, "c": 0.04], ["a": 3, "b": 100], ["a": 2, "b": 100]], of: "debug")
        #expect(thresholds.ceilings["debug"]?["a"] == LoadThresholds.Limit(ceiling: 2.4, measured: 2))
        #expect(thresholds.ceilings["debug"]?["c"] == nil, "too little to be held")
        #expect(thresholds.compare(["a": 2.4, "b": 120], of: "debug").isWithin)
        let above = thresholds.compare(["a": 2.41, "b": 120], of: "debug")
        #expect(!above.isWithin && above.text.hasSuffix("above a ceiling"))
        #expect(!thresholds.compare(["b": 120], of: "debug").isWithin)
        #expect(!thresholds.compare(["a": 1, "b": 1], of: "release").isWithin)
        let again = try JSONDecoder().decode(LoadThresholds.self, from: try thresholds.json())
        #expect(again == thresholds)
    }

    @Test("bytes of connections are counted at the server's end alone") func wires() {
        func line(_ local: String, _ peer: String, _ acked: Int, _ received: Int) -> String {
            "ESTAB 0 0 \(local) \(peer) cubic bytes_sent:9 bytes_acked:\(acked) bytes_received:\(received) segs_out:1\n"
        }
        let wires = [7_080: "http", 5_672: "amqp"]
        let before = WireSample(line("127.0.0.1:7080", "127.0.0.1:9", 10, 20), wires: wires)
        let text =
            line("127.0.0.1:7080", "127.0.0.1:9", 15, 26) + line("127.0.0.1:9", "127.0.0.1:7080", 26, 15)
            + line("[::ffff:127.0.0.1]:5672", "[::ffff:127.0.0.1]:8", 3, 4) + "LISTEN 0 0 0.0.0.0:7080 0.0.0.0:*\n"
        let since = WireSample(text, wires: wires).since(before)
        #expect(since["http"] == WireSample.Bytes(toServer: 6, fromServer: 5))
        #expect(since["amqp"] == WireSample.Bytes(toServer: 4, fromServer: 3) && since.count == 2)
    }

    @Test("numbers and columns") func numbers() {
        #expect(
            LoadText.number(1_234_567.891, decimals: 2) == "1,234,567.89"
                && LoadText.number(-0.001, decimals: 1) == "0.0")
        #expect(LoadText.number(-1_500) == "-1,500" && LoadText.number(0.05, decimals: 2) == "0.05")
        #expect(LoadText.table([["a", "1"], ["bb", "22"]]) == ["a    1", "bb  22"])
        #expect(StackProbe.counter("mss_a_total", in: "mss_a_total_b 5\nmss_a_total 7\n") == 7)
    }
}
