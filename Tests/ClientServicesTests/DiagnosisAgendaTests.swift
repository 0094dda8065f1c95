import Logging
import Testing

@testable import ClientServices

@Suite("Diagnosis: commands and the order of tasks") struct DiagnosisAgendaTests {
    private let start = ContinuousClock.now
    private let bundle = DiagnosisBundle(file: "t-1.log", bytes: 2_500, sha256: "00", partBytes: 1_000)

    private func command(_ id: String, _ more: String = "") throws -> DiagnosisCommand {
        try DiagnosisCommand(Array(#"{"taskId":"\#(id)","from":0,"to":1000\#(more)}"#.utf8))
    }

    private func kept(_ task: DiagnosisTask?) throws -> DiagnosisTask { try #require(task) }

    private func begin(_ agenda: inout DiagnosisAgenda, _ id: String, _ more: String = "") throws -> DiagnosisTask {
        try kept(agenda.apply(command(id, more)))
    }

    @Test("a command has its required members, and defaults for the others") func reading() throws {
        let short = try command("t-1.a_b")
        #expect(short.taskID == "t-1.a_b" && short.run == 1 && short.action == .collect)
        #expect(short.level == .info && short.network == .wifi && short.limitBytes == 20_000_000)
        let long = try command("t", #","run":3,"level":"ERROR","network":"any","limitBytes":5,"more":{}"#)
        #expect(long.run == 3 && long.level == .error && long.network == .any && long.limitBytes == 5)
        #expect(try DiagnosisCommand(Array(#"{"taskId":"t","action":"delete"}"#.utf8)).action == .delete)
    }

    @Test(
        "an invalid command is refused",
        arguments: [
            "", "[]", "{}", #"{"taskId":"t"}"#, #"{"taskId":"t","from":1}"#, #"{"taskId":"t","from":2,"to":2}"#,
            #"{"taskId":"t","from":-1,"to":2}"#, #"{"taskId":"t","from":0,"to":253402300800001}"#,
            #"{"taskId":"","from":0,"to":1}"#, #"{"taskId":"../x","from":0,"to":1}"#,
            #"{"taskId":".x","from":0,"to":1}"#,
            #"{"taskId":"a b","from":0,"to":1}"#,
            #"{"taskId":"\#(String(repeating: "t", count: 65))","from":0,"to":1}"#,
            #"{"taskId":"t","from":0,"to":1,"action":"explode"}"#, #"{"taskId":"t","from":0,"to":1,"run":0}"#,
            #"{"taskId":"t","from":0,"to":1,"level":"loud"}"#, #"{"taskId":"t","from":0,"to":1,"network":"5G"}"#,
            #"{"taskId":"t","from":0,"to":1,"limitBytes":0}"#, #"{"taskId":"t","from":0,"to":1,"limitBytes":20000001}"#,
            #"{"taskId":"t","from":"0","to":1}"#,
        ]) func refused(json: String)
    {
        #expect(throws: PushFault.self) { try DiagnosisCommand(Array(json.utf8)) }
    }

    @Test("networks: a task for Wi-Fi waits for it; a task for any network is tried unless there is none")
    func networks() {
        let kinds: [NetworkKind] = [.unknown, .none, .wifi, .cellular]
        #expect(kinds.map { DiagnosisCommand.Network.wifi.allows($0) } == [false, false, true, false])
        #expect(kinds.map { DiagnosisCommand.Network.any.allows($0) } == [true, false, true, true])
    }

    @Test(
        "a bundle's parts: the last one has the rest",
        arguments: [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (2_500, 3)])
    func parts(bytes: Int, parts: Int) {
        #expect(DiagnosisBundle(file: "", bytes: bytes, sha256: "", partBytes: 1_000).parts == parts)
    }

    @Test("a repeated command is recognised; a higher run starts again, in every phase") func runs() throws {
        let phases: [DiagnosisTask.Phase] = [
            .waiting, .collected(bundle, taken: 2), .done, .refused(.tooLarge, isTold: true), .deleted,
        ]
        for phase in phases {
            var agenda = DiagnosisAgenda(
                tasks: [DiagnosisTask(command: try command("t", #","run":2"#), order: 1, phase: phase)])
            #expect(try agenda.apply(command("t", #","run":2"#)) == nil && agenda.apply(command("t")) == nil)
            let task = try kept(agenda.apply(command("t", #","run":3"#)))
            #expect(task.phase == .waiting && agenda.next(on: .none, at: start) == .collect(task))
        }
    }

    @Test("a deleted task does nothing, and its own command does not restore it") func deletion() throws {
        var agenda = DiagnosisAgenda()
        _ = try begin(&agenda, "t", #","run":2"#)
        let delete = try DiagnosisCommand(Array(#"{"taskId":"t","run":2,"action":"delete"}"#.utf8))
        let late = try DiagnosisCommand(Array(#"{"taskId":"t","run":1,"action":"delete"}"#.utf8))
        let (tooLate, deleted, again) = (agenda.apply(late), agenda.apply(delete), agenda.apply(delete))
        #expect(tooLate == nil && deleted?.phase == .deleted && again == nil)
        #expect(try agenda.apply(command("t", #","run":2"#)) == nil)
        #expect(agenda.next(on: .wifi, at: start) == .wait(until: nil))
        let unknown = try DiagnosisCommand(Array(#"{"taskId":"u","action":"delete"}"#.utf8))
        _ = try kept(agenda.apply(unknown))
        #expect(try agenda.apply(command("u")) == nil, "its command arrived late")
    }

    @Test("a task is collected, then sent part by part, then done") func course() throws {
        var agenda = DiagnosisAgenda()
        var task = try begin(&agenda, "t")
        #expect(agenda.next(on: .none, at: start) == .collect(task), "collecting needs no network")
        #expect(task.status(on: .none, isCollecting: false) == .waiting)
        #expect(task.status(on: .none, isCollecting: true) == .collecting)
        for taken in 0..<3 {
            task = try kept(agenda.replace(task, by: .collected(bundle, taken: taken)))
            #expect(agenda.next(on: .wifi, at: start) == .send(task, bundle, part: taken + 1))
            #expect(agenda.next(on: .cellular, at: start) == .wait(until: nil))
            #expect(task.status(on: .wifi, isCollecting: false) == .uploading(taken: taken, total: 3))
            #expect(task.status(on: .cellular, isCollecting: false) == .waitingForNetwork(taken: taken, total: 3))
        }
        task = try kept(agenda.replace(task, by: .done))
        #expect(task.status(on: .none, isCollecting: false) == .done && task.hasEnded)
        #expect(agenda.next(on: .wifi, at: start) == .wait(until: nil))
    }

    @Test("a refusal is reported on any network, and then the task has no work left") func refusal() throws {
        var agenda = DiagnosisAgenda()
        var task = try begin(&agenda, "t")
        task = try kept(agenda.replace(task, by: .refused(.nothingThere, isTold: false)))
        #expect(!task.hasEnded && agenda.next(on: .cellular, at: start) == .reportRefusal(task, .nothingThere))
        #expect(agenda.next(on: .none, at: start) == .wait(until: nil))
        task = try kept(agenda.replace(task, by: .refused(.nothingThere, isTold: true)))
        #expect(task.hasEnded && agenda.next(on: .wifi, at: start) == .wait(until: nil))
        #expect(task.status(on: .wifi, isCollecting: false) == .refused(.nothingThere))
    }

    @Test("the result of a step whose task is gone is dropped") func stale() throws {
        var agenda = DiagnosisAgenda()
        let old = try begin(&agenda, "t")
        let new = try begin(&agenda, "t", #","run":2"#)
        let dropped = agenda.replace(old, by: .done)
        #expect(dropped == nil && agenda.next(on: .none, at: start) == .collect(new))
        let sent = try kept(agenda.replace(new, by: .collected(bundle, taken: 0)))
        let step = agenda.next(on: .wifi, at: start)
        #expect(agenda.permits(step, on: .wifi) && !agenda.permits(step, on: .cellular))
        _ = agenda.replace(sent, by: .collected(bundle, taken: 1))
        #expect(!agenda.permits(step, on: .wifi))
    }

    @Test("a failure waits 1, 2, 4 … 300 s, and not on another network; success starts the count again")
    func backOff() throws {
        var agenda = DiagnosisAgenda()
        var task = try begin(&agenda, "t")
        task = try kept(agenda.replace(task, by: .collected(bundle, taken: 0)))
        var now = start
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            agenda.failed(task, at: now)
            #expect(agenda.next(on: .wifi, at: now) == .wait(until: now + .seconds(seconds)))
            now += .seconds(seconds)
            #expect(agenda.next(on: .wifi, at: now) == .send(task, bundle, part: 1))
        }
        for _ in 0..<100 { agenda.failed(task, at: now) }
        #expect(agenda.next(on: .wifi, at: now) == .wait(until: now + .seconds(300)))
        agenda.networkChanged()
        #expect(agenda.next(on: .wifi, at: now) == .send(task, bundle, part: 1))
        agenda.failed(task, at: now)
        task = try kept(agenda.replace(task, by: .collected(bundle, taken: 1)))
        #expect(agenda.next(on: .wifi, at: now) == .send(task, bundle, part: 2))
        agenda.failed(task, at: now)
        #expect(agenda.next(on: .wifi, at: now) == .wait(until: now + .seconds(1)))
    }

    @Test("tasks run in the order of arrival, and a task that cannot continue does not delay the others")
    func order() throws {
        var agenda = DiagnosisAgenda()
        let names = ["c", "a", "b"]
        for name in names {
            let task = try begin(&agenda, name, name == "c" ? "" : #","network":"any""#)
            _ = agenda.replace(task, by: .collected(bundle, taken: 0))
        }
        func next(_ network: NetworkKind, at now: ContinuousClock.Instant) -> String? {
            if case .send(let task, _, _) = agenda.next(on: network, at: now) { task.command.taskID } else { nil }
        }
        #expect(next(.wifi, at: start) == "c" && next(.cellular, at: start) == "a" && next(.none, at: start) == nil)
        let failing = try #require(agenda.tasks["a"])
        agenda.failed(failing, at: start)
        #expect(next(.cellular, at: start) == "b")
        agenda.failed(try #require(agenda.tasks["b"]), at: start + .milliseconds(500))
        #expect(agenda.next(on: .cellular, at: start + .milliseconds(500)) == .wait(until: start + .seconds(1)))
        #expect(next(.cellular, at: start + .seconds(1)) == "a")
    }

    @Test("beyond 100 tasks the oldest ended ones are removed, and no other") func forgetting() throws {
        var agenda = DiagnosisAgenda()
        for number in 0..<130 {
            let task = try begin(&agenda, "t\(number)")
            if number % 2 == 0 { _ = agenda.replace(task, by: .done) }
        }
        let forgotten = agenda.forgetOldest()
        #expect(forgotten == (0..<30).map { "t\($0 * 2)" } && agenda.tasks.count == 100)
        let none = agenda.forgetOldest()
        #expect(none.isEmpty)
    }
}
