import ArgumentParser

/// `mssctl recall`: takes a push back from all who have not stored it.
struct RecallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recall", abstract: "Takes a push back: who has not stored it never gets it.",
        discussion: "Apps that have it already get a tombstone, in order.")

    @OptionGroup var api: APIClient
    @OptionGroup var name: OplogArguments

    func run() async throws {
        guard let id = name.id else { throw ValidationError("--id is missing: the unique data id of the push") }
        var members = ["bizType": name.bizType, "thirdMsgId": id]
        members["linkToken"] = name.to
        try APIClient.show(try await api.call("sync/recall", [("instanceId", name.instance)], body: members))
    }
}

/// An oplog as people name it.
struct OplogArguments: ParsableArguments {
    @Option(help: "The instance.")
    var instance: String
    @Option(help: "The Sync ID.")
    var bizType: String
    @Option(help: "The user id or device id; none for a global push.")
    var to: String?
    @Option(help: "The unique data id of the push.")
    var id: String?
}
