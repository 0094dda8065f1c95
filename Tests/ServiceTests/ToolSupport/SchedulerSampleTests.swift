import Foundation
import Testing

@testable import ToolSupport

@Suite("SchedulerSample: what the kernel counts for threads") struct SchedulerSampleTests {
    @Test("the files of a thread are parsed") func files() {
        let details = """
            amqp (17, #threads: 4)
            -------------------------------------------------------------------
            se.sum_exec_runtime                          :            53.215100
            se.nr_migrations                             :                   24
            nr_switches                                  :                  199
            nr_voluntary_switches                        :                  147
            nr_involuntary_switches                      :                   52
            """
        #expect(
            SchedulerSample.counts(schedstat: "53215100 102773601 199\n", sched: details)
                == SchedulerSample.Counts(cpuNanoseconds: 53_215_100, sleeps: 147, migrations: 24))
        #expect(SchedulerSample.counts(schedstat: "", sched: details) == nil)
    }

    @Test("a difference includes new threads from their begin, and leaves out ended ones") func difference() {
        func counts(_ all: Int) -> SchedulerSample.Counts { .init(cpuNanoseconds: all, sleeps: all, migrations: all) }
        let before = SchedulerSample(threads: ["a": [1: counts(10), 2: counts(50), 3: counts(9)]])
        // The kernel has given the id 3 to another thread.
        let after = SchedulerSample(threads: ["a": [1: counts(15), 3: counts(2), 4: counts(100)], "b": [9: counts(1)]])
        #expect(after.since(before) == ["a": counts(107), "b": counts(1)])
    }

    @Test("this process has counters that rise") func thisProcess() throws {
        let pid = Int(ProcessInfo.processInfo.processIdentifier)
        #expect(ProcessTree().family(of: pid).contains(pid))
        let before = SchedulerSample(of: ["test": [pid], "none": [Int(Int32.max)]])
        // Reading the counters takes processor time.
        var used = 0
        while used == 0 {
            used = try #require(SchedulerSample(of: ["test": [pid]]).since(before)["test"]).cpuNanoseconds
        }
        #expect(before.since(before) == ["test": SchedulerSample.Counts(), "none": SchedulerSample.Counts()])
    }
}
