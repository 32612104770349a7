update {rows} t set {revision} = 4 where {t_is $1}
