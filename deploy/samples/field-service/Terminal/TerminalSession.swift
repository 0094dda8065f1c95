import Foundation
import LocalEntities
import MobileSync
import OfflineResources

/// The terminal of one signed-in user: shows the app's live data, and performs commands.
struct TerminalSession: Sendable {
    let app: FieldApp
    let user: String
    let writer: ScreenWriter

    // MARK: Live data

    /// Shows everything that changes, until the group is cancelled. Photos of an earlier run are sent.
    func watch(in group: inout DiscardingTaskGroup) {
        group.addTask { await reporting { try await app.showIncidents { await show($0) } } }
        group.addTask {
            await reporting {
                try await app.showMessages { page in
                    let lines = page.map(Self.line)
                    await writer.change { $0.add(newest: lines) }
                }
            }
        }
        group.addTask { await app.showUnread { await show(unread: $0) } }
        group.addTask { await showConnection() }
        do {
            for (id, photo) in try app.waitingPhotos() { group.addTask { await send(photo, of: id) } }
        } catch {
            group.addTask { await writer.reply(["\(error)"]) }
        }
    }

    private func reporting(_ body: () async throws -> Void) async {
        do { try await body() } catch { await writer.reply(["\(error)"]) }
    }

    private func show(_ incidents: [EntityRow<Incident>]) async {
        let rows = incidents.map { incident in
            let isRefused = incident.state.replayFailure > 0 && incident.state.replayPending == 0
            let theirs = try? app.versionOfOthers(incident)
            return Screen.Row(
                id: incident.id,
                mark: isRefused ? "!" : incident.isPending ? Character(incident.pendingChange.rawValue) : " ",
                summary: incident.record.summary, theirs: theirs?.summary)
        }
        await writer.change { $0.rows = rows }
    }

    private func show(unread count: Int) async {
        let isRead = await writer.screen.part == .conversation
        if isRead, count > 0 { await reporting { try app.markAsRead() } }
        await writer.change { $0.unread = isRead ? 0 : count }
    }

    private func showConnection() async {
        let events = app.sync.client.events
        await writer.change { [client = app.sync.client] in $0.isConnected = client.status == .connected }
        for await event in events {
            switch event {
            case .status(let status): await writer.change { $0.isConnected = status == .connected }
            case .bindRefused(_, let reason), .sessionInvalid(_, let reason):
                await writer.reply(["sign in again: \(reason)"])
            default: break
            }
        }
    }

    private static func line(_ oplog: SyncOplog) -> Screen.Line {
        let message = try? JSONDecoder().decode(Message.self, from: Data(oplog.payload))
        return Screen.Line(id: oplog.oplogID, text: message.map { "\($0.by): \($0.text)" } ?? "(not a message)")
    }

    // MARK: Commands

    /// Performs a command of a signed-in user, other than `quit`.
    func perform(_ command: Command, in group: inout DiscardingTaskGroup) async throws {
        switch command {
        case .list: await writer.change { $0.part = .none }
        case .open(let id): try await open(id)
        case .report(let id, let title): try await app.report(id, title: title)
        case .title(let id, let title): try await app.change(id) { $0.title = title }
        case .note(let id, let text): try await app.change(id) { $0.note = text }
        case .assign(let id, let user):
            try await app.change(id) { incident in
                incident.technician = user
                incident.status = "assigned"
            }
        case .close(let id): try await app.change(id) { $0.status = "closed" }
        case .merge(let side):
            guard case .incident(let id) = await writer.screen.part else { throw FieldError("open an incident first") }
            try await app.merge(id, preferring: side)
        case .messages, .older, .say: try await converse(command)
        case .photo(let id, let file):
            let photo = WaitingPhoto(file: URL(filePath: file).path, replaced: try app.incident(id).photo)
            guard FileManager.default.isReadableFile(atPath: photo.file) else {
                throw FieldError("there is no file \(file)")
            }
            guard await writer.screen.photos[id] == nil else { throw FieldError("a photo of \(id) is being sent") }
            group.addTask { await send(photo, of: id) }
        case .online, .offline, .network: await changeConnection(command)
        case .signIn: throw FieldError("\(user) is signed in; sign out first")
        case .signOut: try await app.signOut()
        case .help: await writer.reply(Command.usages)
        case .quit: break
        }
    }

    private func open(_ id: String) async throws {
        let incident = try app.incident(id)
        await writer.change { $0.part = .incident(id) }
        if incident.photo != nil, let photo = try await app.photo(of: id) {
            await writer.reply(["photo of \(photo.count) bytes"])
        }
    }

    private func converse(_ command: Command) async throws {
        switch command {
        case .messages:
            try app.markAsRead()
            await writer.change { $0.openConversation() }
        case .older:
            guard let oldest = await writer.screen.messages.first else { throw FieldError("there are no messages") }
            let page = try await app.messages(before: oldest.id).map(Self.line)
            await writer.change { $0.add(older: page) }
            if page.isEmpty { await writer.reply(["there are no older messages"]) }
        case .say(let text): try app.say(text)
        default: break
        }
    }

    private func changeConnection(_ command: Command) async {
        switch command {
        case .online:
            app.sync.client.connect()
            app.resources.setOfflineMode(false)
        case .offline:
            app.sync.client.disconnect()
            app.resources.setOfflineMode(true)
        case .network(let name):
            app.networkChanged(to: NetworkPath(isAvailable: name != nil, name: name ?? ""))
            await writer.change { $0.network = name ?? "no network" }
        default: break
        }
    }

    private func send(_ photo: WaitingPhoto, of id: String) async {
        await writer.change { $0.photos[id] = 0 }
        let (steps, continuation) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingNewest(1))
        async let shown: Void = show(steps, of: id)
        do {
            try await app.send(photo, of: id) { continuation.yield(Int(($0.fraction ?? 0) * 10) * 10) }
            await writer.reply(["the photo of \(id) is sent"])
        } catch {
            // A photo whose upload is cancelled goes out at the next start.
            if !Task.isCancelled { await writer.reply(["the photo of \(id) is not sent: \(error)"]) }
        }
        continuation.finish()
        await shown
        await writer.change { $0.photos[id] = nil }
    }

    private func show(_ steps: AsyncStream<Int>, of id: String) async {
        for await step in steps { await writer.change { $0.photos[id] = step } }
    }
}
