import GRDB

/// One transaction of the store. Each part reads and changes one kind of data.
struct StoreTransaction {
    let context: StoreContext
    let aliases: AliasTable
    let resources: ResourceTable
    let members: CollectionMembers
    let refreshes: RefreshQueue
    let edits: EditQueue
    let copies: CopyReader
    let versions: VersionWriter
    let notices: NoticeQueue
    let responses: ResponseApplier
    let pushes: PushApplier
    let transfers: FileTransferTable

    init(_ context: StoreContext) {
        self.context = context
        aliases = AliasTable(context: context)
        resources = ResourceTable(context: context)
        members = CollectionMembers(context: context, resources: resources)
        refreshes = RefreshQueue(context: context)
        edits = EditQueue(context: context, resources: resources, refreshes: refreshes)
        copies = CopyReader(context: context, resources: resources, members: members, edits: edits)
        versions = VersionWriter(
            context: context, resources: resources, members: members, edits: edits, refreshes: refreshes)
        notices = NoticeQueue(context: context)
        responses = ResponseApplier(
            context: context, aliases: aliases, resources: resources, members: members, edits: edits,
            versions: versions, refreshes: refreshes, notices: notices)
        pushes = PushApplier(context: context, resources: resources, versions: versions, refreshes: refreshes)
        transfers = FileTransferTable(context: context)
    }

    /// The number of the newest stored version; later ones have higher numbers.
    func lastChange() throws -> Int64 { try Int64.fetchOne(context.db, sql: "SELECT change FROM store") ?? 0 }

    // MARK: Batches

    /// The URI that accepts batches of edits; nil when none is known.
    func batchPath() throws -> String? { try String.fetchOne(context.db, sql: "SELECT batch_path FROM store") }

    func setBatchPath(_ path: String?) throws {
        try context.db.execute(sql: "UPDATE store SET batch_path = ?", arguments: [path])
    }
}
