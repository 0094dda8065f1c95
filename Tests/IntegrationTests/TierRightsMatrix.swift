/// What each tier may do with each object of the schema (SEC10); everything that does not stand here is refused. A new
/// table, view, sequence or function takes a row here, an empty one where no tier has business with it.
enum TierRightsMatrix {
    /// The tiers, in the order of a row's columns.
    static let roles = ["mss_writer", "mss_statistics", "mss_console", "mss_operator", "mss_oplog_keeper"]

    private static let everything = "SELECT INSERT UPDATE DELETE TRUNCATE"

    /// Rights by object, for each role in the order of `roles`; roles at the end of a row may be left out.
    /// `UPDATE(a,b)`: of these columns alone, by name.
    static let rights: [String: [String]] = [
        // Control data.
        "schema_migration": ["SELECT", "SELECT", "SELECT"],
        "belt": [],
        "control_version": ["SELECT"],
        "instance": ["SELECT", "", "", "SELECT"],
        "sync_configuration": ["SELECT", "", "", "SELECT"],
        "app_key": ["SELECT"],
        // Changed by functions alone, which record what they change.
        "change_instance": ["EXECUTE"],
        "change_configuration": ["EXECUTE"],
        "switch_configuration": ["EXECUTE"],
        "delete_configuration": ["EXECUTE"],
        "create_key": ["EXECUTE"],
        "revoke_key": ["EXECUTE"],
        "reseal_key": ["EXECUTE"],
        "release_device": ["EXECUTE"],
        "finish_change": [],
        "instance_members": [],
        "configuration_members": [],
        "key_members": [],
        // Operation records: nobody changes or removes one.
        "operation_record": ["SELECT", "", "SELECT"],
        "record_head": ["SELECT", "", "SELECT"],
        "record_operation": ["EXECUTE", "", "EXECUTE", "EXECUTE"],
        "list_records": ["EXECUTE", "", "EXECUTE"],
        "one_line": ["EXECUTE", "", "EXECUTE"],
        "chain_part": [],
        // What all processes must count together.
        "request_nonce": ["SELECT INSERT UPDATE(claim) DELETE"],
        "push_quota": ["SELECT INSERT UPDATE(granted,taken) DELETE"],
        "session_revocation": ["SELECT DELETE", "", "", "SELECT INSERT UPDATE(revocation_number,revoked_at)"],
        "session_revocation_revocation_number_seq": [],
        "device_secret": [],
        // Channels and oplogs: written by functions alone.
        "incarnation": [],
        "current_timeline": [],
        "enter_incarnation": ["EXECUTE", "EXECUTE", "EXECUTE"],
        "channel": ["SELECT", "", "", "SELECT"],
        "channel_channel_id_seq": [],
        "oplog": ["SELECT", "", "", "SELECT", everything],
        "oplog_WEEK": [],
        "ended_oplog_partition": ["SELECT"],
        "append_oplogs": ["EXECUTE"],
        "recall_oplog": ["", "", "", "EXECUTE"],
        // Staged roll-outs: changed by functions alone, but for what gateways and statistics were told.
        "rollout": ["SELECT UPDATE(told_stages)", "", "", "SELECT"],
        "rollout_members": [],
        "keep_rollout": [],
        "make_rollout_stage": [],
        "start_rollout": ["", "", "", "EXECUTE"],
        "change_rollout": ["", "", "", "EXECUTE"],
        "stop_rollout": ["", "", "", "EXECUTE"],
        "widen_due_rollout": ["EXECUTE"],
        "forget_ended_rollouts": ["EXECUTE"],
        "ensure_oplog_partitions": ["EXECUTE"],
        "drop_ended_oplog_partition": ["EXECUTE"],
        // Receivers.
        "sync_point": ["SELECT INSERT UPDATE(oplog_id,repeats,resent_id)", "", "", "SELECT"],
        "reread": ["SELECT UPDATE(done_at)", "", "", "SELECT INSERT"],
        "reread_reread_id_seq": [],
        "gateway": ["SELECT DELETE", "", "", "SELECT"],
        "lease_book": ["SELECT INSERT UPDATE(is_complete)", "", "", "SELECT"],
        "device_session": ["SELECT UPDATE(is_foreground,verdict_until) DELETE", "", "", "SELECT"],
        "owner": ["SELECT", "", "", "SELECT"],
        "presence_epoch": [],
        "renew_lease": ["EXECUTE"],
        "register_session": ["EXECUTE"],
        "holds_device": [],
        // Who may use the console.
        "console_account": ["", "", "SELECT UPDATE(language,totp_step)"],
        "console_grant": ["", "", "SELECT"],
        "console_session": ["", "", "SELECT INSERT UPDATE DELETE"],
        "console_invitation": ["", "", "SELECT"],
        "console_try": ["", "", "SELECT INSERT UPDATE DELETE"],
        "claim_try": ["", "", "EXECUTE"],
        "forgive_try": ["", "", "EXECUTE"],
        // Accounts are changed by functions alone, which record what they change.
        "create_account": ["", "", "EXECUTE"],
        "modify_account": ["", "", "EXECUTE"],
        "remove_account": ["", "", "EXECUTE"],
        "invite_account": ["", "", "EXECUTE"],
        "set_password": ["", "", "EXECUTE"],
        "use_invitation": ["", "", "EXECUTE"],
        "set_second_factor": ["", "", "EXECUTE"],
        "account_members": [],
        "put_invitation": [],
        "invite_administrator": [],
        // Statistics: folded and forgotten by functions alone; the writer reads what became of an oplog, the console
        // the figures.
        "statistics_target": ["", "", "SELECT"],
        "statistics_target_target_id_seq": [],
        "statistics_channel": ["", "", "SELECT"],
        "statistics_oplog": ["", "", "SELECT"],
        "statistics_pull": ["", "", "SELECT"],
        "statistics_delivery": ["SELECT", "", "SELECT", "SELECT"],
        "statistics_discarded": ["", "", "", "SELECT"],
        "statistics_day": ["", "", "SELECT"],
        "statistics_day_traits": ["", "", "SELECT"],
        "statistics_target_day": ["", "", "SELECT"],
        "statistics_accepted": ["", "", "SELECT"],
        "statistics_arrival": ["", "", "SELECT"],
        "statistics_connected": ["", "", "SELECT"],
        "statistics_progress": ["", "SELECT UPDATE(folded_until)", "SELECT"],
        "fold_statistics": ["", "EXECUTE"],
        "name_statistics_targets": [],
        "fold_statistics_oplogs": [],
        "fold_statistics_deliveries": [],
        "lock_statistics": [],
        "counts_as_push": [],
        "forget_statistics": ["", "EXECUTE"],
    ]
}
