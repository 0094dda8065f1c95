package import PostgreSQL
package import SyncModel

/// The delivery store in PostgreSQL. Each statement that writes names one store, so no transaction spans two.
package struct DeliveryDatabase: DeliveryStore {
    private static let limit = Duration.seconds(10)

    package let connection: PostgresConnection
    package let stores: StoreLayout

    package init(_ connection: PostgresConnection, _ stores: StoreLayout = .single) {
        self.connection = connection
        self.stores = stores
    }

    package func append(
        _ pushes: [OplogStore.Append]
    ) throws(PostgresError) -> (
        answers: [OplogStore.Appended?], presence: Result<[DeviceSessionStore.Presence], PostgresError>
    ) {
        guard let first = pushes.first else { return ([], .success([])) }
        let append = OplogStore.append(pushes, to: stores.store(of: first.address.target))
        let presence = DeviceSessionStore.presence(of: pushes.map(\.address))
        let results = try connection.run([append.statement, presence.statement], within: Self.limit)
        return (try append.decode(try results[0].get()), presence.result(of: results[1]))
    }

    package func lockedChannels(of channels: Set<ChannelAddress>) throws(PostgresError) -> Set<ChannelAddress> {
        guard let first = channels.first else { return [] }
        let query = OplogStore.lockedChannels(of: Array(channels), in: stores.store(of: first.target))
        return try connection.run(query, within: Self.limit)
    }

    package func leaseRecord() throws(PostgresError) -> LeaseRecord {
        try connection.run(LeaseRecord.read, within: .seconds(2))
    }

    package func change(_ changes: [LeaseRecord.Change]) throws(PostgresError) {
        for result in try connection.run(changes.map(\.statement), within: .seconds(2)) { _ = try result.get() }
    }

    package func perform(
        _ commands: [SessionStoreCommand]
    ) throws(PostgresError) -> [Result<SessionStoreAnswer, PostgresError>] {
        let steps = commands.map { Step($0, in: stores) }
        var results = try connection.run(steps.flatMap(\.statements), within: Self.limit)[...]
        let answers: [Result<SessionStoreAnswer, PostgresError>] = steps.map { step in
            let own = results.prefix(step.statements.count)
            results = results.dropFirst(step.statements.count)
            return Result { () throws(PostgresError) in
                var rows: [PostgresRows] = []
                for result in own { rows.append(try result.get()) }
                return try step.answer(rows)
            }
        }
        return zip(commands, answers).map { command, answer in
            Result { () throws(PostgresError) in try applyFilters(command, try answer.get()) }
        }
    }

    /// Applies the filters that a registration requested. This is a separate transaction after the registration, which
    /// is safe because the gateway sends no data of those channels before the answer.
    private func applyFilters(
        _ command: SessionStoreCommand, _ answer: SessionStoreAnswer
    ) throws(PostgresError) -> SessionStoreAnswer {
        guard case .open(let session, _) = command, case .opened(var opened) = answer, !session.filtered.isEmpty,
            opened.registered.connectionEpoch > 0
        else { return answer }
        // The change may create channels and re-reads, so both are read again after its commit.
        let channels = DeviceSessionStore.channels(of: session)
        let rereads = RereadStore.waiting(
            instanceID: session.instanceID, deviceID: session.deviceID, userID: session.userID)
        let outcome = try SubscriptionStore.applyFilters(
            of: session, connectionEpoch: opened.registered.connectionEpoch, in: stores,
            then: [channels.statement, rereads.statement], on: connection)
        guard let (applied, rows) = outcome else { return answer }
        opened.channels = try channels.decode(rows[0])
        for place in opened.channels.indices {
            opened.channels[place].filters = applied.filters[opened.channels[place].channelID]
        }
        opened.rereads = try rereads.decode(rows[1])
        (opened.userParameters, opened.refusedFilters) = (applied.userParameters, applied.refused)
        return .opened(opened)
    }

    package func pages(_ reads: [PageRead]) throws(PostgresError) -> [Result<ChannelPage, PostgresError>] {
        let queries = reads.map { read in
            let store = stores.store(ofID: read.channelID)
            return (
                head: OplogStore.head(of: read.channelID, readBy: read.owner, in: store),
                page: OplogStore.page(of: read.channelID, after: read.start, limit: read.limit, in: store),
                tombstones: OplogStore.tombstones(
                    of: read.channelID, after: read.after, upto: read.start, limit: Limits.fetchPageOplogs, in: store)
            )
        }
        let results = try connection.run(
            queries.flatMap { [$0.head.statement, $0.page.statement, $0.tombstones.statement] }
                + [DatabaseTime.now.statement], within: Self.limit)
        let time = try DatabaseTime.now.decode(try results[3 * queries.count].get())
        return queries.enumerated().map { index, query in
            Result { () throws(PostgresError) in
                try ChannelPage(
                    head: query.head.decode(results[3 * index].get()),
                    entries: query.page.decode(results[3 * index + 1].get()),
                    tombstones: query.tombstones.decode(results[3 * index + 2].get()), databaseTime: time)
            }
        }
    }

    package func newest(
        of channelID: Int64, after: OplogID, below: OplogID, limit: Int
    ) throws(PostgresError) -> [OplogStore.ValidOplog] {
        let store = stores.store(ofID: channelID)
        return try connection.run(
            OplogStore.newest(of: channelID, after: after, below: below, limit: limit, in: store), within: Self.limit)
    }

    package func recordOutcomes(of pushes: [OplogStore.LivePush]) throws(PostgresError) {
        let queries = stores.grouped(pushes, by: \.channelID).map { store, pushes in
            OplogStore.recordOutcomes(of: pushes, in: store)
        }
        for result in try connection.run(queries, within: Self.limit) { try result.get() }
    }

    package func record(
        _ resends: [SyncPointStore.Resend], _ advances: [SyncPointStore.Advance]
    ) throws(PostgresError) {
        let queries =
            resends.map { SyncPointStore.recordResend($0, in: stores.store(ofID: $0.channelID)) }
            + stores.grouped(advances, by: \.channelID).map { SyncPointStore.advance($1, in: $0) }
        for result in try connection.run(queries, within: Self.limit) { try result.get() }
    }
}

/// The statements of a command, and the decoder of their rows.
private struct Step {
    let statements: [PostgresStatement]
    let answer: ([PostgresRows]) throws(PostgresError) -> SessionStoreAnswer

    init<Output>(_ query: Query<Output>, _ answer: @escaping (Output) -> SessionStoreAnswer) {
        statements = [query.statement]
        self.answer = { rows throws(PostgresError) in answer(try query.decode(rows[0])) }
    }

    init(_ command: SessionStoreCommand, in stores: StoreLayout) {
        switch command {
        case .renewLease(let gatewayID, let epoch, let controlVersion, let sessions):
            self.init(
                DeviceSessionStore.renewLease(
                    gatewayID: gatewayID, epoch: epoch, controlVersion: controlVersion, sessions: sessions)
            ) { .lease($0) }
        case .open(let registration, let sessionDigest):
            self.init(registration, sessionDigest)
        case .close(let instanceID, let deviceID, let connectionEpoch):
            self.init(
                DeviceSessionStore.close(instanceID: instanceID, deviceID: deviceID, connectionEpoch: connectionEpoch)
            ) { .done }
        case .update(
            let instanceID, let deviceID, let connectionEpoch, let number, let isForeground, let verdictMilliseconds):
            self.init(
                DeviceSessionStore.update(
                    instanceID: instanceID, deviceID: deviceID, connectionEpoch: connectionEpoch,
                    number: number, isForeground: isForeground, verdictMilliseconds: verdictMilliseconds)
            ) { .done }
        case .sweep(let gatewayID, let since):
            self.init(DeviceSessionStore.sweep(gatewayID: gatewayID, since: since)) { .swept($0) }
        case .finishReread(let id):
            self.init(RereadStore.finish(id, in: stores.store(ofID: id))) { .done }
        case .storeParameters(let parameters, let userID, let instanceID):
            self.init(
                SubscriptionStore.store(
                    parameters, of: userID, in: instanceID, stores.store(of: userID, in: instanceID)),
                then: SubscriptionStore.gateways(of: userID, in: instanceID))
        }
    }

    private init(_ store: Query<Void>, then gateways: Query<[String]>) {
        statements = [store.statement, gateways.statement]
        answer = { rows throws(PostgresError) in
            .storedParameters(gateways: try gateways.decode(rows[1]))
        }
    }

    private init(_ registration: DeviceSessionStore.Registration, _ sessionDigest: [UInt8]) {
        let register = DeviceSessionStore.register(registration)
        let channels = DeviceSessionStore.channels(of: registration)
        let rereads = RereadStore.waiting(
            instanceID: registration.instanceID, deviceID: registration.deviceID, userID: registration.userID)
        let revocation = RevocationStore.latest(of: sessionDigest, registration.instanceID, registration.userID)
        // The token comes last, so the places of the other results are the same without it.
        let token = PushTokenStore.record(registration).map { [$0.statement] } ?? []
        statements = [register.statement, channels.statement, rereads.statement, revocation.statement] + token
        answer = { rows throws(PostgresError) in
            .opened(
                try SessionStoreAnswer.Opened(
                    registered: register.decode(rows[0]), channels: channels.decode(rows[1]),
                    rereads: rereads.decode(rows[2]), revocation: revocation.decode(rows[3])))
        }
    }
}
