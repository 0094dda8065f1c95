package import PostgreSQL
package import SyncModel

extension PostgresConnection: DeliveryStore {
    private static let limit = Duration.seconds(10)

    package func append(
        _ pushes: [OplogStore.Append]
    ) throws(PostgresError) -> (
        answers: [OplogStore.Appended?], presence: Result<[DeviceSessionStore.Presence], PostgresError>
    ) {
        let append = OplogStore.append(pushes)
        let presence = DeviceSessionStore.presence(of: pushes.map(\.address))
        let results = try run([append.statement, presence.statement], within: Self.limit)
        return (append.decode(try results[0].get()), results[1].map(presence.decode))
    }

    package func lockedChannels(of channels: Set<ChannelAddress>) throws(PostgresError) -> Set<ChannelAddress> {
        try run(OplogStore.lockedChannels(of: Array(channels)), within: Self.limit)
    }

    package func leaseBook() throws(PostgresError) -> LeaseBook { try run(LeaseBook.read, within: .seconds(2)) }

    package func change(_ book: [LeaseBook.Change]) throws(PostgresError) {
        for result in try run(book.map(\.statement), within: .seconds(2)) { _ = try result.get() }
    }

    package func perform(
        _ commands: [SessionStoreCommand]
    ) throws(PostgresError) -> [Result<SessionStoreAnswer, PostgresError>] {
        let steps = commands.map(Step.init)
        var results = try run(steps.flatMap(\.statements), within: Self.limit)[...]
        let answers: [Result<SessionStoreAnswer, PostgresError>] = steps.map { step in
            let own = results.prefix(step.statements.count)
            results = results.dropFirst(step.statements.count)
            return Result { () throws(PostgresError) in
                var rows: [PostgresRows] = []
                for result in own { rows.append(try result.get()) }
                return step.answer(rows)
            }
        }
        return zip(commands, answers).map { command, answer in
            Result { () throws(PostgresError) in try settled(command, try answer.get()) }
        }
    }

    /// Puts the filters in force that a registration asked for: a transaction of their own behind the registration's,
    /// since the gateway sends nothing of those channels before the answer.
    private func settled(
        _ command: SessionStoreCommand, _ answer: SessionStoreAnswer
    ) throws(PostgresError) -> SessionStoreAnswer {
        guard case .open(let session, _) = command, case .opened(var opened) = answer, !session.filtered.isEmpty,
            opened.registered.connectionEpoch > 0
        else { return answer }
        let settled = try SubscriptionStore.settle(
            session, connectionEpoch: opened.registered.connectionEpoch, on: self)
        guard let settled else { return answer }
        // It may have made channels and re-reads.
        opened.channels = try run(DeviceSessionStore.channels(of: session), within: Self.limit)
        for place in opened.channels.indices {
            opened.channels[place].filters = settled.filters[opened.channels[place].channelID]
        }
        opened.rereads = try run(
            RereadStore.waiting(
                instanceID: session.instanceID, deviceID: session.deviceID, userID: session.userID),
            within: Self.limit)
        (opened.userParameters, opened.refusedFilters) = (settled.userParameters, settled.refused)
        return .opened(opened)
    }

    package func pages(_ reads: [PageRead]) throws(PostgresError) -> [Result<ChannelPage, PostgresError>] {
        let queries = reads.map { read in
            (
                head: OplogStore.head(of: read.channelID, readBy: read.owner),
                page: OplogStore.page(of: read.channelID, after: read.start, limit: read.limit),
                tombstones: OplogStore.tombstones(
                    of: read.channelID, after: read.after, upto: read.start, limit: Limits.fetchPageOplogs)
            )
        }
        let results = try run(
            queries.flatMap { [$0.head.statement, $0.page.statement, $0.tombstones.statement] }
                + [DatabaseTime.now.statement], within: Self.limit)
        let time = DatabaseTime.now.decode(try results[3 * queries.count].get())
        return queries.enumerated().map { index, query in
            Result { () throws(PostgresError) in
                ChannelPage(
                    head: query.head.decode(try results[3 * index].get()),
                    entries: query.page.decode(try results[3 * index + 1].get()),
                    tombstones: query.tombstones.decode(try results[3 * index + 2].get()), databaseTime: time)
            }
        }
    }

    package func newest(
        of channelID: Int64, after: OplogID, below: OplogID, limit: Int
    ) throws(PostgresError) -> [OplogStore.Standing] {
        try run(OplogStore.newest(of: channelID, after: after, below: below, limit: limit), within: Self.limit)
    }

    package func recordOutcomes(of pushes: [OplogStore.LivePush]) throws(PostgresError) {
        try run(OplogStore.recordOutcomes(of: pushes), within: Self.limit)
    }

    package func record(
        _ resends: [SyncPointStore.Resend], _ advances: [SyncPointStore.Advance]
    ) throws(PostgresError) {
        let queries = resends.map(SyncPointStore.noteResend) + [SyncPointStore.advance(advances)]
        for result in try run(queries, within: Self.limit) { try result.get() }
    }
}

/// A command with the statements that do it, and how their rows are read.
private struct Step {
    let statements: [PostgresStatement]
    let answer: ([PostgresRows]) -> SessionStoreAnswer

    init<Output>(_ query: Query<Output>, _ answer: @escaping (Output) -> SessionStoreAnswer) {
        statements = [query.statement]
        self.answer = { answer(query.decode($0[0])) }
    }

    init(_ command: SessionStoreCommand) {
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
        case .update(let instanceID, let deviceID, let connectionEpoch, let isForeground, let verdictMilliseconds):
            self.init(
                DeviceSessionStore.update(
                    instanceID: instanceID, deviceID: deviceID, connectionEpoch: connectionEpoch,
                    isForeground: isForeground, verdictMilliseconds: verdictMilliseconds)
            ) { .done }
        case .sweep(let gatewayID, let since):
            self.init(DeviceSessionStore.sweep(gatewayID: gatewayID, since: since)) { .swept($0) }
        case .finishReread(let id):
            self.init(RereadStore.finish(id)) { .done }
        case .keepParameters(let parameters, let userID, let instanceID):
            self.init(
                SubscriptionStore.keep(parameters, of: userID, in: instanceID),
                then: SubscriptionStore.gateways(of: userID, in: instanceID))
        }
    }

    private init(_ keep: Query<Void>, then gateways: Query<[String]>) {
        statements = [keep.statement, gateways.statement]
        answer = { rows in .kept(gateways: gateways.decode(rows[1])) }
    }

    private init(_ registration: DeviceSessionStore.Registration, _ sessionDigest: [UInt8]) {
        let register = DeviceSessionStore.register(registration)
        let channels = DeviceSessionStore.channels(of: registration)
        let rereads = RereadStore.waiting(
            instanceID: registration.instanceID, deviceID: registration.deviceID, userID: registration.userID)
        let revocation = RevocationStore.latest(of: sessionDigest, registration.instanceID, registration.userID)
        // The token comes last: where the others' rows stand is as without one.
        let token = PushTokenStore.tell(registration).map { [$0.statement] } ?? []
        statements = [register.statement, channels.statement, rereads.statement, revocation.statement] + token
        answer = { rows in
            .opened(
                SessionStoreAnswer.Opened(
                    registered: register.decode(rows[0]), channels: channels.decode(rows[1]),
                    rereads: rereads.decode(rows[2]), revocation: revocation.decode(rows[3])))
        }
    }
}
