import DeliveryHistory
import PostgreSQL
import ServiceKit
import SyncModel
import TestSupport
import Testing

@testable import SyncStore

/// `MemoryStore` must answer like PostgreSQL: a seed draws calls, and both stores execute them. Each store draws its
/// own ids and epochs, so the test compares the rows that they name.
@Suite("The store's contract", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct DeliveryStoreContractTests {
    private static let app = InstanceID("app")
    private static let kinds: [(bizType: String, kind: SyncModel.ChannelKind)] = [
        ("CHAT", .user), ("SOLO", .user), ("DEVICE", .device), ("NEWS", .globalUser), ("OFF", .user),
        ("LIVE", .user),
    ]

    /// The ids and epochs that one store has drawn, by the test's own names.
    private struct Names {
        var leases: [String: [Int64]] = [:]
        var connections: [String: [Int64]] = [:]
        var channels: [Int64: ChannelAddress] = [:]
        /// Ownership epochs.
        var owners: [Int64] = []

        func channelID(_ address: ChannelAddress) -> Int64 { channels.first { $0.value == address }?.key ?? 0 }

        /// The epoch of a device's connection, counted back from the newest; 0: it has not so many.
        func connection(of device: String, back: Int) -> Int64 {
            connections[device]?.dropLast(back).last ?? 0
        }

        /// The lease record with the index of each lease in place of its epoch, so that both stores can be compared.
        func comparable(_ book: LeaseRecord) -> [LeaseRecord.Lease] {
            book.leases.map { lease in
                var lease = lease
                lease.epoch = Int64(leases[lease.gatewayID]?.firstIndex(of: lease.epoch) ?? -1)
                return lease
            }
        }
    }

    private static func configurations() -> [SyncConfiguration] {
        kinds.map { bizType, kind in
            SyncConfiguration(
                instanceID: app, bizType: BizType(bizType), description: "", kind: kind,
                isMultiDevice: bizType == "CHAT" || kind == .globalUser, isPersistent: bizType != "LIVE", repush: .all,
                checksSession: false, isOnline: bizType != "OFF", isImmediate: kind == .globalUser)
        }
    }

    @Test("memory answers as PostgreSQL does, with any number of stores", arguments: 1...4)
    func same(seed: UInt64) async throws {
        let stores = StoreLayout(count: seed % 2 == 0 ? 4 : 1)
        try await TestDatabase.with(connections: 1, stores: stores) { databases in
            let database = databases[0]
            try await database.configure(Self.configurations())
            try await database.asDelivery { try Self.compare($0, seed: seed) }
        }
    }

    private static func compare(_ postgres: DeliveryDatabase, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let instance = Instance(
            id: app, name: "", isEnabled: true, validatorURL: "", verdictLifetime: .seconds(600))
        var memory = MemoryStore(instances: [instance], configurations: configurations())
        var (theirs, ours) = (Names(), Names())
        for step in 0..<600 {
            let what = "seed \(seed), step \(step)"
            switch Int.random(in: 0..<11, using: &random) {
            case 0...3: try append(postgres, &memory, &theirs, &ours, &random, what)
            case 4: try lease(postgres, &memory, &theirs, &ours, &random, what)
            case 5, 6: try open(postgres, &memory, &theirs, &ours, &random, what)
            case 7: try record(postgres, &memory, theirs, ours, &random)
            case 8: try page(postgres, memory, theirs, ours, &random, what)
            case 9: try update(postgres, &memory, theirs, ours, &random)
            default: try close(postgres, &memory, theirs, ours, &random)
            }
        }
        #expect(ours.channels.count > 5)
    }

    // MARK: Draws

    private static func address(_ random: inout SeededGenerator) -> ChannelAddress {
        let (bizType, kind) = kinds[Int.random(in: 0..<kinds.count, using: &random)]
        let target =
            switch kind {
            case .user: "u\(Int.random(in: 0..<3, using: &random))"
            case .device: "d\(Int.random(in: 0..<4, using: &random))"
            default: ""
            }
        return ChannelAddress(
            target: TargetAddress(instanceID: app, kind: kind, target: target), bizType: BizType(bizType))
    }

    private static func device(_ random: inout SeededGenerator) -> String {
        "d\(Int.random(in: 0..<4, using: &random))"
    }

    private static func gateway(_ random: inout SeededGenerator) -> String {
        "g\(Int.random(in: 0..<2, using: &random))"
    }

    // MARK: Calls

    private static func append(
        _ postgres: DeliveryDatabase, _ memory: inout MemoryStore, _ theirs: inout Names, _ ours: inout Names,
        _ random: inout SeededGenerator, _ step: String
    ) throws {
        let pushes = (0..<Int.random(in: 1...5, using: &random)).map { _ in
            OplogStore.Append(
                address: address(&random),
                oplog: Oplog(
                    id: .zero, thirdMessageID: ThirdMessageID("\(Int.random(in: 0..<60, using: &random))"),
                    payload: [UInt8.random(in: 0...255, using: &random)], isBinary: true, targeting: Targeting(),
                    validUntil: WallTime(milliseconds: 0), createdAt: WallTime(milliseconds: 0), isPersistent: true))
        }
        let (answers, presence) = try appendByStore(pushes, to: postgres)
        let own = memory.append(pushes, at: .now)
        for (push, (left, right)) in zip(pushes, zip(answers, own)) {
            #expect((left == nil) == (right == nil), "\(step)")
            guard let left, let right else { continue }
            (theirs.channels[left.channelID], ours.channels[right.channelID]) = (push.address, push.address)
            #expect(left.oplogID == right.oplogID, "\(step)")
            #expect(left.isDuplicate == right.isDuplicate, "\(step)")
            #expect(left.headBefore == right.headBefore, "\(step)")
            #expect(left.headAfter == right.headAfter, "\(step)")
            #expect(left.awaitsOutcome == right.awaitsOutcome, "\(step)")
            #expect(left.rules == right.rules && left.isImmediate == right.isImmediate, "\(step)")
        }
        func comparable(_ presence: [DeviceSessionStore.Presence]) -> [String] {
            presence.map { session in
                let state = [session.isOwner, session.hasValidVerdict, session.isSuspended]
                return "\(session.ordinal) \(session.gatewayID) \(session.deviceID.text) \(state)"
            }.sorted()
        }
        #expect(
            comparable(presence) == comparable(memory.presence(of: pushes.map(\.address), at: .now)),
            "\(step)")
        guard Bool.random(using: &random) else { return }
        func live(_ answers: [OplogStore.Appended?]) -> [OplogStore.LivePush] {
            answers.compactMap { $0 }.filter(\.awaitsOutcome).map(\.livePush)
        }
        try postgres.recordOutcomes(of: live(answers))
        memory.recordOutcomes(of: live(own))
    }

    /// Appends as a writer does: the pushes of one store in one call.
    private static func appendByStore(
        _ pushes: [OplogStore.Append], to postgres: DeliveryDatabase
    ) throws -> ([OplogStore.Appended?], [DeviceSessionStore.Presence]) {
        var answers = [OplogStore.Appended?](repeating: nil, count: pushes.count)
        var sessions: [DeviceSessionStore.Presence] = []
        let stores = postgres.stores
        for places in Dictionary(grouping: pushes.indices, by: { stores.store(of: pushes[$0].address.target) }).values {
            let (own, presence) = try postgres.append(places.map { pushes[$0] })
            for (place, answer) in zip(places, own) { answers[place] = answer }
            sessions += try presence.get().map { session in
                var session = session
                session.ordinal = places[session.ordinal]
                return session
            }
        }
        return (answers, sessions)
    }

    private static func lease(
        _ postgres: DeliveryDatabase, _ memory: inout MemoryStore, _ theirs: inout Names, _ ours: inout Names,
        _ random: inout SeededGenerator, _ step: String
    ) throws {
        let gateway = gateway(&random)
        let count = ours.leases[gateway]?.count ?? 0
        let sessions = Int.random(in: 0...1_000, using: &random)
        // The current lease, an earlier one, or none, as of a process that has just started.
        let index = count == 0 ? nil : [count - 1, count - 1, 0, nil].randomElement(using: &random) ?? nil
        func command(_ names: Names) -> SessionStoreCommand {
            .renewLease(
                gatewayID: gateway, epoch: index.flatMap { names.leases[gateway]?[$0] } ?? 0, controlVersion: 1,
                sessions: sessions)
        }
        guard case .lease(let left) = try postgres.perform([command(theirs)])[0].get(),
            case .lease(let right) = memory.perform(command(ours), at: .now)
        else { return }
        let isNew = (
            left.epoch != theirs.leases[gateway]?.last, right.epoch != ours.leases[gateway]?.last
        )
        #expect(isNew.0 == isNew.1, "\(step)")
        #expect(left.gateways == right.gateways && left.sessions == right.sessions, "\(step)")
        if isNew.0 { theirs.leases[gateway, default: []].append(left.epoch) }
        if isNew.1 { ours.leases[gateway, default: []].append(right.epoch) }
        let (book, own) = (try postgres.leaseRecord(), memory.leaseRecord)
        #expect(theirs.comparable(book) == ours.comparable(own), "\(step)")
        #expect(book.isComplete == own.isComplete, "\(step)")
        // A writer removes a lease as expired. With `late`, the lease was renewed meanwhile.
        guard Bool.random(using: &random), let place = book.leases.indices.randomElement(using: &random) else { return }
        let late: Int64 = Bool.random(using: &random) ? 0 : 1
        var (ended, ownEnded) = (book.leases[place], own.leases[place])
        (ended.renewals, ownEnded.renewals) = (ended.renewals - late, ownEnded.renewals - late)
        try postgres.change([.end(ended)])
        memory.change(.end(ownEnded))
        #expect(theirs.comparable(try postgres.leaseRecord()) == ours.comparable(memory.leaseRecord), "\(step)")
    }

    private static func open(
        _ postgres: DeliveryDatabase, _ memory: inout MemoryStore, _ theirs: inout Names, _ ours: inout Names,
        _ random: inout SeededGenerator, _ step: String
    ) throws {
        let (gateway, device) = (gateway(&random), device(&random))
        let user = [nil, "u0", "u1", "u2"].randomElement(using: &random) ?? nil
        let number = UInt64.random(in: 1...6, using: &random)
        let registration = UInt64.random(in: 1...6, using: &random)
        let deviceNumber = UInt64.random(in: 0...4, using: &random)
        let connection = Int.random(in: 0..<3, using: &random)
        let (takesOwnership, suspends) = (Bool.random(using: &random), Bool.random(using: &random))
        let owner = Int.random(in: 0..<4, using: &random)
        let verdict: Int64 = Bool.random(using: &random) ? 3_600_000 : 0
        func command(_ names: Names) -> SessionStoreCommand {
            .open(
                DeviceSessionStore.Registration(
                    gatewayID: gateway, gatewayEpoch: names.leases[gateway]?.last ?? 0, instanceID: app,
                    deviceID: DeviceID(device), storeID: StoreID("s"), userID: user.map { UserID($0) },
                    traits: DeviceTraits(
                        operatingSystem: .iOS, appVersion: "1.0", slot: DeviceSlot(of: DeviceID(device))),
                    isForeground: true, connectionNumber: number, registrationNumber: registration,
                    deviceConnectionNumber: deviceNumber,
                    connectionEpoch: names.connection(of: device, back: connection),
                    takesOwnership: takesOwnership,
                    ownershipEpoch: owner < names.owners.count ? names.owners[names.owners.count - 1 - owner] : 0,
                    verdictMilliseconds: verdict,
                    suspended: suspends ? [BizType("CHAT")] : []), sessionDigest: [])
        }
        guard case .opened(let left) = try postgres.perform([command(theirs)])[0].get(),
            case .opened(let right) = memory.perform(command(ours), at: .now)
        else { return }
        #expect((left.registered.connectionEpoch == 0) == (right.registered.connectionEpoch == 0), "\(step)")
        #expect(left.registered.supersededGatewayID == right.registered.supersededGatewayID, "\(step)")
        #expect(left.registered.hasLease == right.registered.hasLease, "\(step)")
        #expect(left.registered.ownsUser == right.registered.ownsUser, "\(step)")
        #expect(left.registered.becameOwner == right.registered.becameOwner, "\(step)")
        if left.registered.becameOwner {
            theirs.owners.append(left.registered.ownershipEpoch)
            ours.owners.append(right.registered.ownershipEpoch)
        }
        let known = (
            theirs.connections[device]?.firstIndex(of: left.registered.connectionEpoch),
            ours.connections[device]?.firstIndex(of: right.registered.connectionEpoch)
        )
        #expect(known.0 == known.1, "\(step)")
        if left.registered.connectionEpoch > 0, known.0 == nil {
            theirs.connections[device, default: []].append(left.registered.connectionEpoch)
            ours.connections[device, default: []].append(right.registered.connectionEpoch)
        }
        func comparable(_ states: [DeviceSessionStore.ChannelState]) -> [String] {
            states.map { state in
                let numbers = [state.head, state.syncPoint, state.acknowledged, state.resentID].map { "\($0.value)" }
                return "\(state.address) \(numbers) \(state.repeats)"
            }.sorted()
        }
        #expect(comparable(left.channels) == comparable(right.channels), "\(step)")
    }

    private static func record(
        _ postgres: DeliveryDatabase, _ memory: inout MemoryStore, _ theirs: Names, _ ours: Names,
        _ random: inout SeededGenerator
    ) throws {
        let (address, device) = (address(&random), device(&random))
        let isOwn = address.bizType.text == "CHAT" || address.target.kind.isGlobal
        let (upto, repeats) = (Int64.random(in: 0...30, using: &random), Int.random(in: 0...3, using: &random))
        let acknowledged = Int64.random(in: 0...upto, using: &random)
        let user = address.target.kind == .globalUser ? "u\(Int.random(in: 0..<3, using: &random))" : ""
        func advance(_ names: Names) -> SyncPointStore.Advance {
            SyncPointStore.Advance(
                channelID: names.channelID(address), deviceID: isOwn ? device : "", storeID: isOwn ? "s" : "",
                userID: user, upto: OplogID(upto), acknowledged: isOwn ? OplogID(acknowledged) : .zero,
                storedBy: isOwn ? "" : device)
        }
        func resend(_ names: Names) -> SyncPointStore.Resend {
            SyncPointStore.Resend(
                channelID: names.channelID(address), deviceID: device, storeID: "s", userID: user,
                oplogID: OplogID(upto), repeats: repeats)
        }
        guard ours.channelID(address) > 0 else { return }
        let resends = repeats == 0
        try postgres.record(resends ? [resend(theirs)] : [], [advance(theirs)])
        memory.record(resends ? [resend(ours)] : [], [advance(ours)])
    }

    private static func page(
        _ postgres: DeliveryDatabase, _ memory: MemoryStore, _ theirs: Names, _ ours: Names,
        _ random: inout SeededGenerator, _ step: String
    ) throws {
        let address = address(&random)
        guard ours.channelID(address) > 0 else { return }
        let (after, limit) = (Int64.random(in: 0...20, using: &random), Int.random(in: 1...8, using: &random))
        let owner = address.bizType.text == "SOLO" ? DeviceID(device(&random)) : nil
        func read(_ names: Names) -> PageRead {
            let position = OplogID(after)
            return PageRead(
                channelID: names.channelID(address), after: position, start: position, limit: limit, owner: owner)
        }
        // Non-persistent oplogs leave a page after some time, so they are not compared.
        func stored(_ page: ChannelPage) -> [Oplog] { page.entries.filter(\.isPersistent) }
        let left = try postgres.pages([read(theirs)])[0].get()
        let right = memory.page(read(ours), at: .now)
        #expect(left.head == right.head, "\(step)")
        // A device that is not the owner receives nothing, so the rest of the page does not matter.
        guard left.head != nil else { return }
        #expect(stored(left).map(\.id) == stored(right).map(\.id), "\(step)")
        #expect(stored(left).map(\.payload) == stored(right).map(\.payload), "\(step)")
        let below = OplogID(after + 6)
        let newest = try postgres.newest(
            of: theirs.channelID(address), after: .zero, below: below, limit: limit)
        let own = memory.newest(of: ours.channelID(address), after: .zero, below: below, limit: limit, at: .now)
        #expect(newest.map(\.id) == own.map(\.id), "\(step)")
    }

    private static func update(
        _ postgres: DeliveryDatabase, _ memory: inout MemoryStore, _ theirs: Names, _ ours: Names,
        _ random: inout SeededGenerator
    ) throws {
        let device = device(&random)
        let back = Int.random(in: 0..<2, using: &random)
        let number = UInt64.random(in: 0...6, using: &random)
        let verdict: Int64 = Bool.random(using: &random) ? 3_600_000 : 0
        func command(_ names: Names) -> SessionStoreCommand {
            .update(
                instanceID: app, deviceID: DeviceID(device),
                connectionEpoch: names.connection(of: device, back: back), number: number, isForeground: true,
                verdictMilliseconds: verdict)
        }
        _ = try postgres.perform([command(theirs)])[0].get()
        _ = memory.perform(command(ours), at: .now)
    }

    private static func close(
        _ postgres: DeliveryDatabase, _ memory: inout MemoryStore, _ theirs: Names, _ ours: Names,
        _ random: inout SeededGenerator
    ) throws {
        let device = device(&random)
        let back = Int.random(in: 0..<2, using: &random)
        func command(_ names: Names) -> SessionStoreCommand {
            .close(
                instanceID: app, deviceID: DeviceID(device),
                connectionEpoch: names.connection(of: device, back: back))
        }
        _ = try postgres.perform([command(theirs)])[0].get()
        _ = memory.perform(command(ours), at: .now)
    }
}
