import SyncModel
import SyncStore

/// One diagnosis task as pages and the API show it.
struct DiagnosisItem: Encodable, Sendable {
    let taskId: String
    let deviceId: String
    /// The user of the device when its last part arrived.
    let userId: String?
    /// The operator who created the task.
    let actor: String
    let description: String
    /// Milliseconds since 1970, like all times here.
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
    /// The log's name and size, once a part has arrived.
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

    init(_ task: DiagnosisStore.Held, _ words: PageTexts) {
        taskId = task.taskID
        deviceId = task.deviceID.text
        userId = task.userID?.text
        actor = task.actor
        description = task.description
        createdAt = task.createdAt.milliseconds
        changedAt = task.changedAt.milliseconds
        from = task.request.from.milliseconds
        to = task.request.to.milliseconds
        level = task.request.level
        network = task.request.network
        limitBytes = task.request.limitBytes
        run = task.run
        state = task.state.word
        refusal = task.refusal.isEmpty ? nil : task.refusal
        file = task.file.isEmpty ? nil : task.file
        fileBytes = task.file.isEmpty ? nil : task.fileBytes
        parts = task.partCount
        takenParts = task.takenParts
        createdText = task.createdAt.text
        fromText = task.request.from.text
        toText = task.request.to.text
        let word = words.text("diagnosisState.\(task.state.word)")
        stateWord =
            switch task.state {
            case .asked, .whole: word
            case .coming: "\(word) \(task.takenParts)/\(task.partCount)"
            case .refused: "\(word): \(words.text("diagnosisRefusal.\(task.refusal)"))"
            }
        isWhole = task.state == .whole
        api = "/api/v1" + Paths.page(task.instanceID, "diagnosis") + "/" + task.taskID
    }
}
