import BusMessages
import CoreMetrics
import SwiftProtobuf
import SyncModel
import Testing

@testable import ServiceKit

@Suite("Process reports")
struct ProcessReportTests {
    private static func report(_ service: String, _ process: String, startedAt: Int64 = 0) -> ProcessReport {
        ProcessReport(
            service: service, processID: process, version: "1", startedAt: WallTime(milliseconds: startedAt),
            isReady: true, conditions: [:], figures: [:])
    }

    @Test("a report has what readiness consists of, and the counters and gauges that have no labels")
    func contents() {
        let metrics = MetricsRegistry(service: "s", version: "1")
        metrics.makeCounter(label: "pushes", dimensions: []).increment(by: 3)
        metrics.makeCounter(label: "calls", dimensions: [("code", "X")]).increment(by: 5)
        metrics.makeRecorder(label: "devices", dimensions: [], aggregate: false).record(1.5)
        metrics.makeRecorder(label: "sizes", dimensions: [], aggregate: true).record(1.5)
        metrics.makeTimer(label: "calls", dimensions: []).recordNanoseconds(1)
        let health = HealthState()
        health.set("amqp", isReady: true)
        health.set("control", isReady: false)
        let reporter = ProcessReporter(service: "s", version: "1", health: health, metrics: metrics)
        let before = WallTime.now
        var report = reporter.report
        #expect(report.clock.map { $0 >= before && $0 <= .now } == true)
        report.figures[ProcessReport.clockFigure] = nil
        #expect(report.figures == ["mss_pushes_total": 3, "mss_devices": 1.5])
        #expect(!report.isReady && report.conditions == ["amqp": true, "control": false])
        #expect(report.processID == reporter.report.processID && !report.processID.isEmpty)
    }

    @Test(
        "a report has the first 99 figures by name and the clock, and parses back; a larger one is ignored"
    )
    func bounds() {
        let metrics = MetricsRegistry(service: "s", version: "1")
        for number in 100..<300 { metrics.makeCounter(label: "c\(number)", dimensions: []).increment(by: 1) }
        let health = HealthState()
        let report = ProcessReporter(service: "s", version: "1", health: health, metrics: metrics).report
        #expect(Set(report.figures.keys) == Set((100..<199).map { "mss_c\($0)_total" } + ["mss_clock_seconds"]))
        #expect(ProcessReport(bus: report.bus) == report)
        var larger = report.bus
        larger.figures["mss_d"] = 1
        #expect(ProcessReport(bus: larger) == nil)
        var longer = report.bus
        longer.service = String(repeating: "s", count: 101)
        #expect(ProcessReport(bus: longer) == nil)
        var wider = report.bus
        wider.conditions = Dictionary(uniqueKeysWithValues: (0..<21).map { ("c\($0)", true) })
        #expect(ProcessReport(bus: wider) == nil)
    }

    @Test("a gateway's report has the connected devices of the fullest 1,000 instances; a larger one is ignored")
    func devices() {
        let reporter = ProcessReporter(
            service: "g", version: "1", health: HealthState(), metrics: MetricsRegistry(service: "g", version: "1"))
        #expect(reporter.report.devices.isEmpty)
        reporter.devices.record(Dictionary(uniqueKeysWithValues: (1...1_200).map { (InstanceID("i\($0)"), $0) }))
        let read = ProcessReport(bus: reporter.report.bus)
        #expect(read?.devices == Dictionary(uniqueKeysWithValues: (201...1_200).map { (InstanceID("i\($0)"), $0) }))
        var larger = reporter.report.bus
        larger.devices["more"] = 1
        #expect(ProcessReport(bus: larger) == nil)
        reporter.devices.record([:])
        #expect(reporter.report.devices.isEmpty)
    }

    @Test("the newest report of a process counts, and without one for 10 s it is gone")
    func table() {
        let start = ContinuousClock.now
        var table = ProcessReportTable()
        var first = Self.report("b", "1", startedAt: 5)
        table.record(first, at: start)
        first.isReady = false
        table.record(first, at: start + .seconds(2))
        table.record(Self.report("b", "0", startedAt: 4), at: start + .seconds(3))
        table.record(Self.report("a", "2"), at: start + .seconds(4))
        #expect(table.reports(at: start + .seconds(4)).map(\.processID) == ["2", "0", "1"])
        #expect(table.reports(at: start + .seconds(4)).map(\.isReady) == [true, true, false])
        #expect(table.reports(at: start + .milliseconds(11_999)).map(\.processID) == ["2", "0", "1"])
        #expect(table.reports(at: start + .seconds(12)).map(\.processID) == ["2", "0"])
    }

    @Test("a flood of names removes no live process, and ended ones free their places")
    func flood() {
        let start = ContinuousClock.now
        var table = ProcessReportTable()
        table.record(Self.report("a", "mine"), at: start)
        for number in 0..<ProcessReportTable.processesMax * 2 { table.record(Self.report("x", "\(number)"), at: start) }
        #expect(table.reports(at: start).count == ProcessReportTable.processesMax)
        #expect(table.reports(at: start).first?.processID == "mine")
        table.record(Self.report("a", "later"), at: start + .seconds(10))
        let later = table.reports(at: start + .seconds(10))
        #expect(later.count == 1 && later.first?.processID == "later")
    }

    @Test("a process goes on reporting until it is cancelled")
    func cancelled() async {
        let reporter = ProcessReporter(
            service: "s", version: "1", health: HealthState(), metrics: MetricsRegistry(service: "s", version: "1"))
        var count = 0
        await withTaskGroup(of: Void.self) { group in
            let (reports, continuation) = AsyncStream.makeStream(of: ProcessReport.self)
            group.addTask {
                await reporter.run { continuation.yield($0) }
                continuation.finish()
            }
            for await _ in reports {
                count += 1
                group.cancelAll()
            }
        }
        #expect(count == 1)
    }
}
