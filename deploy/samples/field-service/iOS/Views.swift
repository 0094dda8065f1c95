// Not compiled here: SwiftUI needs Apple's SDK.
import LocalEntities
import MobileSync
import PhotosUI
import SwiftUI

struct SignInView: View {
    let model: FieldModel
    @State private var user = ""

    var body: some View {
        Form {
            TextField("User", text: $user)
            if !user.isEmpty { Button("Sign in") { Task { await model.signIn(user) } } }
        }
        .navigationTitle("Field service")
    }
}

struct IncidentList: View {
    @ObservedObject var model: FieldModel

    var body: some View {
        List(model.incidents, id: \.record.id) { incident in
            NavigationLink {
                IncidentView(model: model, id: incident.record.id)
            } label: {
                HStack {
                    Text(incident.record.summary)
                    Spacer()
                    if incident.isPending { Image(systemName: "icloud.and.arrow.up") }
                }
            }
        }
        .navigationTitle(model.isConnected ? model.user : "\(model.user), offline")
        .toolbar {
            NavigationLink("Messages (\(model.unread))") { ConversationView(model: model) }
            Button("Sign out") { Task { await model.signOut() } }
        }
    }
}

struct IncidentView: View {
    @ObservedObject var model: FieldModel
    let id: String
    /// The title that the user has typed; nil: none.
    @State private var title: String?
    @State private var item: PhotosPickerItem?

    private var incident: EntityRow<Incident>? { model.incidents.first { $0.record.id == id } }

    var body: some View {
        Form {
            if let incident, let theirs = try? model.app?.versionOfOthers(incident) {
                Section("Conflict") {
                    Button("Prefer mine: \(incident.record.summary)") { merge(.mine) }
                    Button("Prefer theirs: \(theirs.summary)") { merge(.theirs) }
                }
            }
            TextField("Title", text: typed).onSubmit { save() }
            PhotosPicker("Photo", selection: $item, matching: .images)
            if let progress = model.progress[id] { ProgressView(value: progress) }
        }
        .navigationTitle("Incident \(id)")
        .onChange(of: item) { item in Task { await send(item) } }
    }

    private var typed: Binding<String> { Binding(get: { title ?? incident?.record.title ?? "" }, set: { title = $0 }) }

    private func save() {
        guard let new = title else { return }
        title = nil
        Task { await model.reporting { try await model.app?.change(id) { $0.title = new } } }
    }

    private func merge(_ side: EntityConflict.Side) {
        Task { await model.reporting { try await model.app?.merge(id, preferring: side) } }
    }

    private func send(_ item: PhotosPickerItem?) async {
        guard let data = try? await item?.loadTransferable(type: Data.self) else { return }
        await model.reporting {
            guard let folder = model.app?.device.folder else { return }
            let name = "photo-\(UUID().uuidString).jpg"
            try data.write(to: folder.appending(path: name))
            await model.send(WaitingPhoto(file: name, replaced: incident?.record.photo), of: id)
        }
    }
}

struct ConversationView: View {
    @ObservedObject var model: FieldModel
    @State private var text = ""

    var body: some View {
        List {
            ForEach(model.messages.reversed(), id: \.oplogID) { Text(Self.line($0)) }
            TextField("Message", text: $text).onSubmit { say() }
        }
        .navigationTitle("Messages")
        .toolbar { Button("Older") { Task { await model.loadOlder() } } }
        .onAppear { try? model.app?.markAsRead() }
        .onChange(of: model.unread) { _ in try? model.app?.markAsRead() }
    }

    private func say() {
        Task {
            await model.reporting { try model.app?.say(text) }
            text = ""
        }
    }

    private static func line(_ oplog: SyncOplog) -> String {
        let message = try? JSONDecoder().decode(Message.self, from: Data(oplog.payload))
        return message.map { "\($0.by): \($0.text)" } ?? ""
    }
}
