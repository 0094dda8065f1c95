import SyncModel
import SyncStore

/// One diagnosis task as pages and the API show it.
struct DiagnosisItem: Encodable, Sendable {
    let taskId: String
    let deviceId: String
    /// Whose device it was when something last came.
    let userId: String?
    /// Who made it.
    let actor: String
    let description: String
    /// Milliseconds since 1970, as the others.
    let createdAt: Int64
    let changedAt: Int64
    let from: Int64
    let to: Int64
    let level: String
    let network: String
    let limitBytes: Int
    let run: Int
    /// `asked`, `coming`, `whole` or `refused`.
    let state: String
    /// `too-large`, `nothing-there`, `unreadable` or `damaged`.
    let refusal: String?
    /// The log's name and size, once something has come.
    let file: String?
    let fileBytes: Int?
    let parts: Int
    let takenParts: Int

    // For pages alone.
    let createdText: String
    let fromText: String
    let toText: String
    let stateWord: String
    let isWhole: Bool
    let api: String

    private enum CodingKeys: String, CodingKey {
        case taskId, deviceId, userId, actor, description, createdAt, changedAt, from, to, level, network, limitBytes
        case run, state, refusal, file, fileBytes, parts, takenParts
    }

    init(_ held: DiagnosisStore.Held, _ words: Words) {
        taskId = held.taskID
        deviceId = held.deviceID.text
        userId = held.userID?.text
        actor = held.actor
        description = held.description
        createdAt = held.createdAt.milliseconds
        changedAt = held.changedAt.milliseconds
        from = held.request.from.milliseconds
        to = held.request.to.milliseconds
        level = held.request.level
        network = held.request.network
        limitBytes = held.request.limitBytes
        run = held.run
        state = held.state.word
        refusal = held.refusal.isEmpty ? nil : held.refusal
        file = held.file.isEmpty ? nil : held.file
        fileBytes = held.file.isEmpty ? nil : held.fileBytes
        parts = held.partCount
        takenParts = held.takenParts
        createdText = held.createdAt.text
        fromText = held.request.from.text
        toText = held.request.to.text
        let word = words.text("diagnosisState.\(held.state.word)")
        stateWord =
            switch held.state {
            case .asked, .whole: word
            case .coming: "\(word) \(held.takenParts)/\(held.partCount)"
            case .refused: "\(word): \(words.text("diagnosisRefusal.\(held.refusal)"))"
            }
        isWhole = held.state == .whole
        api = "/api/v1" + Paths.page(held.instanceID, "diagnosis") + "/" + held.taskID
    }
}
