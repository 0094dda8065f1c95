import BusMessages
import Foundation
import Glibc

/// Injects the faults of a schedule and heals them.
struct FaultInjector: Sendable {
    let world: TortureWorld
    /// Receives a text for the report when a fault cannot be injected or healed.
    let complain: @Sendable (String) -> Void
    private let held = HeldTransactions()

    private var stack: TortureStack { world.stack }

    init(world: TortureWorld, complain: @escaping @Sendable (String) -> Void) {
        self.world = world
        self.complain = complain
    }

    /// Injects a fault.
    func begin(_ fault: FaultSchedule.Planned) async {
        do {
            switch fault.kind {
            case .process(let act, let tier):
                stack.signal(Self.signal(act), process(tier, fault.member))
            case .brokerLosesData: try stack.wipeBroker()
            case .queueDeletion:
                let queues = CommandQueue.allCases
                try await stack.broker(["delete_queue", queues[fault.member % queues.count].rawValue])
            case .brokerAlarm: try await stack.broker(["set_vm_memory_high_watermark", "absolute", "1MB"])
            case .edge(let trouble, let edge):
                let edgeFault = Self.edgeFault(trouble)
                for proxy in proxies(edge, fault.member) {
                    proxy.set(edgeFault)
                    if trouble == .cut { proxy.reset() }
                }
            case .clockJump(let tier):
                try await stack.setMachine(of: process(tier, fault.member), clock: Self.jump(fault.member))
            case .slowDisk: try await stack.setMachine(of: "postgres", flush: .milliseconds(300))
            case .fullDisk: try await stack.disk("fill")
            case .powerCut: try await stack.power("off")
            case .lockedChannels:
                let instance = TortureWorld.instances[fault.member % TortureWorld.instances.count]
                try await held.lockChannels(of: instance, world.busyUsers, fault, in: stack.toolFile)
                for user in world.busyUsers {
                    let target = TortureWorld.target(instance, TortureWorld.chat, "user-\(user)")
                    for count in 2...4 {
                        world.request(TortureWorld.Burst(target: target, count: count, recallAfter: nil))
                    }
                }
            case .heldPartitions:
                try await held.lockOplog(fault, in: stack.toolFile)
                // A writer checks the partitions when it starts.
                stack.signal(SIGTERM, process(.writer, fault.member))
            case .standbyAway: try await held.setStandby("away", in: stack.toolFile)
            case .idleTransaction: try await held.idle(fault, in: stack.toolFile)
            }
        } catch {
            complain("\(fault.kind.name): \(error)")
        }
    }

    /// Heals a fault. A fault that ended by itself needs nothing.
    func heal(_ fault: FaultSchedule.Planned) async {
        do {
            switch fault.kind {
            case .process(.pause, let tier): stack.signal(SIGCONT, process(tier, fault.member))
            case .brokerAlarm: try await stack.broker(["set_vm_memory_high_watermark", "0.6"])
            case .edge(let trouble, let edge):
                for proxy in proxies(edge, fault.member) {
                    // After an outage a network can have lost the state of its connections.
                    if trouble.isSilent, fault.member.isMultiple(of: 2) { proxy.reset() }
                    proxy.set(nil)
                }
            case .clockJump(let tier): try await stack.setMachine(of: process(tier, fault.member))
            case .slowDisk: try await stack.setMachine(of: "postgres")
            case .fullDisk: try await stack.disk("free")
            case .powerCut: try await stack.power("on")
            case .lockedChannels, .heldPartitions, .idleTransaction: await held.release(fault)
            case .standbyAway: try await held.setStandby("", in: stack.toolFile)
            case .process, .brokerLosesData, .queueDeletion: break
            }
        } catch {
            complain("heal \(fault.kind.name): \(error)")
        }
    }

    /// Releases every open transaction at the end of a round.
    func end() async { await held.stop() }

    private func process(_ tier: TortureStack.Tier, _ member: Int) -> String {
        let processes = tier.processes(TortureStack.scale)
        return processes[member % processes.count]
    }

    /// The proxies of one process, or for one member in four those of all processes of the edge.
    private func proxies(_ edge: FaultKind.Edge, _ member: Int) -> [FaultProxy] {
        let all = stack.proxies[edge, default: []]
        guard !all.isEmpty, member % 4 != 3 else { return all }
        return [all[member % all.count]]
    }

    /// Plus or minus one hour or one day.
    private static func jump(_ member: Int) -> Duration {
        let length: Duration = member.isMultiple(of: 4) ? .seconds(86_400) : .seconds(3_600)
        return member.isMultiple(of: 2) ? length : .zero - length
    }

    private static func signal(_ act: FaultKind.Act) -> Int32 {
        switch act {
        case .kill: SIGKILL
        case .pause: SIGSTOP
        case .restart: SIGTERM
        }
    }

    private static func edgeFault(_ trouble: FaultKind.Trouble) -> EdgeFault {
        switch trouble {
        case .cut: .cut
        case .silence: .silence([.up, .down])
        case .silenceUp: .silence([.up])
        case .silenceDown: .silence([.down])
        case .delay: .delay(milliseconds: 1_500)
        case .fragments: .fragments
        case .truncation: .truncation
        case .repeatedDeliveries: .repeatedDeliveries
        }
    }
}

extension FaultKind.Trouble {
    /// Whether connections stay open although no data passes.
    fileprivate var isSilent: Bool { self == .silence || self == .silenceUp || self == .silenceDown }
}
